//! Every client that `init` knows: the one place that says which files it has and what it can do.
//! The README's tables and the help of `init` are made of it.

use super::{Client, File, Format, Hooks, Place, Readme, Tried};

const STRICT: Format = Format::Json { comments: false, trailing_commas: false, mark: true };
const STRICT_WITHOUT_MARK: Format =
    Format::Json { comments: false, trailing_commas: false, mark: false };
const COMMENTS: Format = Format::Json { comments: true, trailing_commas: false, mark: false };

/// A file that holds nothing but servers.
pub(super) const SERVERS: File =
    File { path: "", or: &[], format: STRICT, server: None, hooks: None, allow: None };

/// The entry in `.mcp.json`, which more than one client reads.
pub(super) const MCP_JSON: Place = Place {
    format: STRICT,
    section: "mcpServers",
    program: include_str!("../../templates/claude.mcp.json"),
    http: Some(include_str!("../../templates/claude.http.json")),
    sse: Some(include_str!("../../templates/claude.sse.json")),
    wakes: false,
    trusts: false,
};

const NO_HOOKS: &str = "no hooks of team-table are known for it, so none were set up";
const NO_WAKE: &str = "nothing is known that wakes an idle session, so nothing was set up for that";

/// A client of which nothing is known but how it starts a server or comes to one.
const PLAIN: Client = Client {
    name: "",
    title: "",
    files: &[],
    signs: &[],
    next: "",
    next_hooks: NO_HOOKS,
    next_wake: NO_WAKE,
    next_allow: "",
    is_sessionless: false,
    tried: None,
    readme: Readme { hooks: "none", wake: "nothing", allow: "" },
};

/// Every client that `init` knows, in the order of its output.
pub const CLIENTS: &[Client] = &[CLAUDE, CODEX, GEMINI, OPENCODE, COPILOT, CURSOR, VS_CODE, ZED];

/// Source: tried with Claude Code 2.1.332, which drops settings that are not strict JSON.
const CLAUDE: Client = Client {
    name: "claude",
    title: "Claude Code",
    files: &[
        File { path: ".mcp.json", server: Some(MCP_JSON), ..SERVERS },
        File {
            path: ".claude/settings.json",
            hooks: Some(Hooks {
                announce: include_str!("../../templates/claude.hooks.json"),
                wake: Some(include_str!("../../templates/claude.wake.json")),
            }),
            allow: Some(include_str!("../../templates/claude.allow.json")),
            ..SERVERS
        },
    ],
    signs: &[],
    next: "start `claude` here, trust the folder (the default answer is no) and choose \
           `Use this MCP server`; `claude mcp list` then says `Connected`",
    next_hooks: "it runs the hooks of a project once the folder is trusted",
    next_wake: "when a message comes while a session is idle, a hook that waits in the \
                background gives it a turn, which costs tokens though nobody typed anything",
    next_allow: "it heeds the permissions of a project once the folder is trusted",
    is_sessionless: true,
    tried: Some(Tried {
        version: "2.1.332",
        badge: "yes",
        wait: "yes",
        hook_at_prompt: "yes",
        hook_after_tool: "yes",
        hook_at_end: "yes",
        woken: "yes",
    }),
    readme: Readme {
        hooks: "`.claude/settings.json`; run once the folder is trusted",
        wake: "a hook at `Stop`, in the same file",
        allow: "`permissions` in the same file; heeded once the folder is trusted",
    },
};

/// Source: tried with Codex 0.171.0, which drops hooks that are not strict JSON, asks before a call
/// by what the tools say of themselves, and knows no transport but streamable HTTP.
const CODEX: Client = Client {
    name: "codex",
    title: "Codex",
    files: &[
        File {
            path: ".codex/config.toml",
            format: Format::Toml,
            server: Some(Place {
                format: Format::Toml,
                section: "mcp_servers",
                program: include_str!("../../templates/codex.config.toml"),
                http: Some(include_str!("../../templates/codex.http.toml")),
                sse: None,
                wakes: true,
                trusts: false,
            }),
            ..SERVERS
        },
        File {
            path: ".codex/hooks.json",
            hooks: Some(Hooks {
                announce: include_str!("../../templates/codex.hooks.json"),
                wake: None,
            }),
            ..SERVERS
        },
    ],
    signs: &[],
    next: "start `codex` here and trust the folder (it ignores `.codex/` until then); \
           `codex mcp list` then shows `team-table`",
    next_hooks: "at its next start it says `Hooks need review`: look at them and trust them; \
                 it asks again after any edit of `.codex/hooks.json`",
    next_wake: "when a message comes while a session is idle, the server gives it a turn by \
                `codex queue`, which costs tokens though nobody typed anything",
    next_allow: "it runs the tools without asking, so nothing was set up for that",
    is_sessionless: false,
    tried: Some(Tried {
        version: "0.171.0",
        badge: "yes",
        wait: "yes",
        hook_at_prompt: "yes, and at the start",
        hook_after_tool: "yes",
        hook_at_end: "yes",
        woken: "yes",
    }),
    readme: Readme {
        hooks: "`.codex/hooks.json`; at its next start it says `Hooks need review`, and again \
                after any edit",
        wake: "`--wake` in `.codex/config.toml`",
        allow: "not needed",
    },
};

/// Source: tried with Gemini CLI 0.61.0. Under `url` it tries streamable HTTP first, unless the
/// type says otherwise.
const GEMINI: Client = Client {
    name: "gemini",
    title: "Gemini CLI",
    files: &[File {
        path: ".gemini/settings.json",
        or: &[],
        format: COMMENTS,
        server: Some(Place {
            format: COMMENTS,
            section: "mcpServers",
            program: include_str!("../../templates/gemini.mcp.json"),
            http: Some(include_str!("../../templates/gemini.http.json")),
            sse: Some(include_str!("../../templates/gemini.sse.json")),
            wakes: false,
            trusts: true,
        }),
        hooks: Some(Hooks {
            announce: include_str!("../../templates/gemini.hooks.json"),
            wake: None,
        }),
        allow: None,
    }],
    signs: &[".gemini"],
    next: "start `gemini` here and trust the folder (it ignores `.gemini/` until then); \
           `gemini mcp list` then says `Connected`",
    next_hooks: "it runs the hooks of a project once the folder is trusted",
    next_wake: NO_WAKE,
    next_allow: "`trust` in its entry says that the tools run without asking, once the folder is \
                 trusted",
    is_sessionless: false,
    tried: Some(Tried {
        version: "0.61.0",
        badge: "yes",
        wait: "yes",
        hook_at_prompt: "not at the first",
        hook_after_tool: "yes",
        hook_at_end: "yes",
        woken: "no",
    }),
    readme: Readme {
        hooks: "`.gemini/settings.json`; run once the folder is trusted",
        wake: "nothing is known that wakes it",
        allow: "`trust` in the server's entry",
    },
};

/// Source: tried with opencode 1.18.33, which falls back to the transport of 2024 by itself, reads
/// `opencode.jsonc` after `opencode.json`, and follows the last permission that fits.
const OPENCODE: Client = Client {
    name: "opencode",
    title: "opencode",
    files: &[File {
        path: "opencode.json",
        or: &["opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc"],
        format: Format::ANY_JSON,
        server: Some(Place {
            format: Format::ANY_JSON,
            section: "mcp",
            program: include_str!("../../templates/opencode.mcp.json"),
            http: Some(include_str!("../../templates/opencode.http.json")),
            sse: Some(include_str!("../../templates/opencode.http.json")),
            wakes: false,
            trusts: false,
        }),
        hooks: None,
        allow: Some(include_str!("../../templates/opencode.allow.json")),
    }],
    signs: &["opencode.json", "opencode.jsonc", ".opencode"],
    next: "start `opencode` here; `opencode mcp list` then says `connected`",
    next_allow: "`permission` in its file says that the tools run without asking, as they do \
                 unless a config says otherwise",
    tried: Some(Tried {
        version: "1.18.33",
        badge: "yes",
        wait: "yes",
        hook_at_prompt: "no",
        hook_after_tool: "no",
        hook_at_end: "no",
        woken: "no",
    }),
    readme: Readme { allow: "`permission` in the same file", ..PLAIN.readme },
    ..PLAIN
};

/// Source: tried with Copilot CLI 1.0.102. It takes a server from `.mcp.json` rather than one of
/// that name from `.github/mcp.json`, and has permissions in no file of a project. It reads Claude
/// Code's settings too, and says that it does not know such hooks.
const COPILOT: Client = Client {
    name: "copilot",
    title: "Copilot CLI",
    files: &[File {
        path: ".mcp.json",
        or: &[".github/mcp.json"],
        format: STRICT_WITHOUT_MARK,
        server: Some(MCP_JSON),
        ..SERVERS
    }],
    signs: &[".github/mcp.json", ".github/copilot"],
    next: "start `copilot` here and trust the folder; `copilot mcp list` then shows `team-table`",
    next_hooks: "no hooks of team-table are known for it; of Claude Code's in \
                 `.claude/settings.json` it says that it cannot load them",
    next_allow: "no file of a project can say so: start it with `copilot --allow-tool=team-table`",
    tried: Some(Tried {
        version: "1.0.102",
        badge: "yes",
        wait: "yes",
        hook_at_prompt: "no",
        hook_after_tool: "no",
        hook_at_end: "no",
        woken: "no",
    }),
    readme: Readme { allow: "not in a file: `copilot --allow-tool=team-table`", ..PLAIN.readme },
    ..PLAIN
};

/// Source: cursor.com/docs/mcp and /docs/reference/permissions, not tried. A list of allowed tools
/// in a file takes the place of the one that the person keeps in the program.
const CURSOR: Client = Client {
    name: "cursor",
    title: "Cursor",
    files: &[File {
        path: ".cursor/mcp.json",
        server: Some(Place {
            format: STRICT,
            section: "mcpServers",
            program: include_str!("../../templates/cursor.mcp.json"),
            http: Some(include_str!("../../templates/cursor.http.json")),
            sse: Some(include_str!("../../templates/cursor.http.json")),
            wakes: false,
            trusts: false,
        }),
        ..SERVERS
    }],
    signs: &[".cursor"],
    next: "open the folder in Cursor and enable `team-table` in its settings, under MCP",
    next_allow: "allow `team-table` in Cursor's settings; a list in a file would take the place of \
                 yours, so none was written",
    readme: Readme { allow: "in Cursor's settings", ..PLAIN.readme },
    ..PLAIN
};

/// Source: code.visualstudio.com/docs/copilot/reference/mcp-configuration, not tried.
const VS_CODE: Client = Client {
    name: "vscode",
    title: "VS Code",
    files: &[File {
        path: ".vscode/mcp.json",
        format: Format::ANY_JSON,
        server: Some(Place {
            format: Format::ANY_JSON,
            section: "servers",
            program: include_str!("../../templates/vscode.mcp.json"),
            http: Some(include_str!("../../templates/vscode.http.json")),
            sse: Some(include_str!("../../templates/vscode.sse.json")),
            wakes: false,
            trusts: false,
        }),
        ..SERVERS
    }],
    signs: &[".vscode"],
    next: "open the folder in VS Code, trust it, and start `team-table` by `MCP: List Servers`",
    next_allow: "no file of a project can say so: allow the tools of `team-table` when it asks",
    readme: Readme { allow: "when it asks", ..PLAIN.readme },
    ..PLAIN
};

/// Source: zed.dev/docs/ai/mcp, /docs/worktree-trust and /docs/ai/tool-permissions, not tried. It
/// knows no variables, and nothing is said of the transport of 2024.
const ZED: Client = Client {
    name: "zed",
    title: "Zed",
    files: &[File {
        path: ".zed/settings.json",
        format: Format::ANY_JSON,
        server: Some(Place {
            format: Format::ANY_JSON,
            section: "context_servers",
            program: include_str!("../../templates/zed.settings.json"),
            http: Some(include_str!("../../templates/zed.http.json")),
            sse: None,
            wakes: false,
            trusts: false,
        }),
        ..SERVERS
    }],
    signs: &[".zed"],
    next: "open the folder in Zed and trust it; its agent panel then lists `team-table`",
    next_allow: "no file of a project can say so: allow the tools of `team-table` when it asks, or \
                 under `agent.tool_permissions` in your own settings",
    readme: Readme { allow: "in your own settings", ..PLAIN.readme },
    ..PLAIN
};
