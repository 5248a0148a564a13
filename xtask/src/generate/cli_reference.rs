//! `docs/reference/cli.md`: every command and every flag, as the program reads them.

use super::File;

pub(super) fn file() -> File {
    File {
        path: "docs/reference/cli.md".into(),
        content: steward_cli::reference::markdown(),
    }
}
