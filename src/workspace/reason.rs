//! Why a table is the one.

use std::{fmt, path::PathBuf};

use super::FOLDER;

/// Why it is this table; its text reads on from `reason: `.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// `--db-path` names the table.
    Option,
    /// `TEAM_TABLE_DB` names the table.
    Variable,
    /// The nearest folder at or above the working directory.
    Nearest { folder: PathBuf, cwd: PathBuf },
    /// The checkout is a linked worktree of another one.
    MainCheckout { checkout: PathBuf, main: PathBuf },
    /// The repository has no checkout of its own.
    BesideRepository { repository: PathBuf },
    /// No folder is there yet, and this is the top of the checkout.
    CheckoutTop { top: PathBuf },
    /// No folder is there yet, and there is no checkout.
    WorkingDirectory { cwd: PathBuf },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Option => f.write_str("`--db-path` names it"),
            Reason::Variable => f.write_str("`TEAM_TABLE_DB` names it"),
            Reason::Nearest { folder, cwd } => write!(
                f,
                "`{}` is the nearest `{FOLDER}` at or above the working directory `{}`",
                folder.display(),
                cwd.display()
            ),
            Reason::MainCheckout { checkout, main } => write!(
                f,
                "`{}` is a linked worktree; its main checkout is `{}`",
                checkout.display(),
                main.display()
            ),
            Reason::BesideRepository { repository } => {
                write!(f, "it lies beside the repository `{}`", repository.display())
            }
            Reason::CheckoutTop { top } => {
                write!(f, "`{}` is the top of the git checkout", top.display())
            }
            Reason::WorkingDirectory { cwd } => write!(
                f,
                "`{}` is the working directory, and no git checkout holds it",
                cwd.display()
            ),
        }
    }
}
