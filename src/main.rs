//! argv -> config -> run -> exit code; nothing else.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(team_table::cli::main(std::env::args_os()))
}
