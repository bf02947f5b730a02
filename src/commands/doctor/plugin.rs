//! Clients that have us as a plugin.

use super::{Report, clients::AREA};
use crate::clients::{
    package::Package,
    survey::{Entry, Evidence, Survey},
};

/// Why a client starts the server where no file of the project names it.
pub(super) const STARTS: &str = "it has the plugin";

/// Whether the client says that the plugin is installed and turned on.
pub(super) fn is_installed(survey: &Survey, evidence: &Evidence<'_>) -> bool {
    Package::named(survey.name)
        .is_some_and(|package| package.is_installed(evidence.own.iter().chain(evidence.settings)))
}

/// Looks at the project's entry beside the plugin. Source: Claude Code 2.1.332 drops a plugin's server
/// for one of the project with the same command and arguments; Codex 0.171.0 for one of the same name.
pub(super) fn judge(survey: &Survey, entry: &Entry, report: &mut Report) {
    if survey.name != "claude" || entry.args == ["serve"] {
        return;
    }
    let (client, file) = (survey.client(), survey.client().server_file().path);
    report.wrong(
        AREA,
        format!(
            "{client} has the plugin, and `{file}` names the server with other arguments, so that it \
             starts both: the second one does not sit down"
        ),
        "run `team-table init --remove --client claude`, or turn the plugin off here",
    );
}
