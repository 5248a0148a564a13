//! Compiles a part from its Go module.
//!
//! Three steps: fetch what `go.sum` pins, see how many packages are not in the
//! build cache yet, compile them. The program is static (no cgo) and stripped, and
//! becomes one file with a symbolic link per name it goes by.

use std::{
    collections::HashSet,
    env,
    fs::{self, File},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use super::{
    Error, Part,
    cache::Cache,
    child::{self, Event},
    error::io,
    recipe::{Go, Recipe},
    version,
};
use crate::progress::{Progress, Task};

/// The one file behind the names of a part with several programs.
const MULTICALL: &str = "multicall";

/// Everything one build needs to know.
pub(crate) struct Job<'a> {
    pub(crate) part: Part,
    pub(crate) recipe: &'a Recipe,
    pub(crate) go: &'a Go,
    pub(crate) toolchain: &'a Path,
    pub(crate) cache: &'a Cache,
    pub(crate) stage: &'a Path,
    pub(crate) log: &'a Path,
}

impl Job<'_> {
    pub(crate) fn run(&self, progress: &Progress) -> Result<(), Error> {
        let (go_build, _held) = self.cache.go_build()?;
        for folder in ["src", "tmp", "bin"] {
            let folder = self.stage.join(folder);
            fs::create_dir_all(&folder).map_err(io("create", &folder))?;
        }
        for (name, text) in self.go.files {
            let path = self.stage.join("src").join(name);
            fs::write(&path, text).map_err(io("write", &path))?;
        }
        let mut task = progress.task(self.part.to_string());
        let wanted = self.fetch(&go_build, &mut task)?;
        self.compile(&go_build, &wanted, &mut task)?;
        self.copy_share(&go_build)?;
        task.done("built");
        Ok(())
    }

    /// Downloads the modules and returns the packages that need compiling.
    fn fetch(&self, go_build: &Path, task: &mut Task) -> Result<HashSet<String>, Error> {
        let list = self.stage.join("tmp/packages");
        let output = File::create(&list).map_err(io("create", &list))?;
        let mut command = self.go(go_build, "list");
        command
            .args(["-deps", "-trimpath", "-tags", self.go.tags])
            .args(["-f", "{{if .Stale}}{{.ImportPath}}{{end}}", self.go.package])
            .stdout(output);
        let mut fetched = 0_u32;
        let mut said = Vec::new();
        let status = child::run(command, self.log, |event| {
            if let Event::Said(line) = event {
                if line.starts_with("go: downloading ") {
                    fetched += 1;
                } else {
                    said.push(line.to_owned());
                }
            }
            task.at(format_args!("fetching, {fetched} modules so far"));
        })?;
        if !status.success() {
            return Err(self.fetch_error(&said));
        }
        let text = fs::read_to_string(&list).map_err(io("read", &list))?;
        Ok(text
            .lines()
            .filter(|l| !l.is_empty())
            .map(str::to_owned)
            .collect())
    }

    fn compile(
        &self,
        go_build: &Path,
        wanted: &HashSet<String>,
        task: &mut Task,
    ) -> Result<(), Error> {
        let (file, links) = self.layout();
        let mut command = self.go(go_build, "build");
        command
            .args(["-v", "-trimpath", "-tags", self.go.tags, "-ldflags"])
            .arg(self.link_flags())
            .arg("-o")
            .arg(self.stage.join("bin").join(&file))
            .arg(self.go.package);
        let mut compiled = 0_usize;
        let mut said = Vec::new();
        let status = child::run(command, self.log, |event| {
            if let Event::Said(line) = event {
                if wanted.contains(line) {
                    compiled += 1;
                } else {
                    said.push(line.to_owned());
                }
            }
            if compiled >= wanted.len() {
                task.at("linking");
            } else {
                task.at(format_args!(
                    "compiling, {compiled} of {} packages",
                    wanted.len()
                ));
            }
        })?;
        if !status.success() {
            return Err(self.build_error(&said));
        }
        for link in links {
            let path = self.stage.join("bin").join(link);
            symlink(&file, &path).map_err(io("link", &path))?;
        }
        self.check_version()
    }

    /// The name of the compiled file, and the links to it.
    fn layout(&self) -> (String, Vec<&'static str>) {
        match self.recipe.programs {
            [only] => (only.name.to_owned(), Vec::new()),
            several => (
                MULTICALL.to_owned(),
                several.iter().map(|p| p.name).collect(),
            ),
        }
    }

    fn link_flags(&self) -> String {
        let set = |(name, value): &(&str, &str)| format!(" -X {name}={value}");
        let variables: String = self.go.variables.iter().map(set).collect();
        format!("-s -w{variables}")
    }

    /// A part whose programs name another version would be refused in `--bin-dir`
    /// and confuse every test about versions: better to fail here.
    fn check_version(&self) -> Result<(), Error> {
        for program in self.recipe.programs {
            let path = self.stage.join("bin").join(program.name);
            if !version::is(&path, program.ask, self.recipe.version) {
                return Err(Error::Build {
                    part: self.part.to_string(),
                    detail: format!(
                        "{} does not name version {}",
                        program.name, self.recipe.version
                    ),
                    log: self.log.to_path_buf(),
                });
            }
        }
        Ok(())
    }

    fn copy_share(&self, go_build: &Path) -> Result<(), Error> {
        let Some((module, folder)) = self.go.share else {
            return Ok(());
        };
        let mut command = self.go(go_build, "list");
        command.args(["-m", "-f", "{{.Dir}}", module]);
        let output = command.output().map_err(|source| Error::Run {
            program: self.toolchain.display().to_string(),
            source,
        })?;
        let from = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()).join(folder);
        copy_tree(&from, &self.stage.join("share"))
    }

    fn go(&self, go_build: &Path, verb: &str) -> Command {
        let mut command = child::command(self.toolchain);
        settle(&mut command, go_build.with_file_name("go"));
        command
            .arg(verb)
            .current_dir(self.stage.join("src"))
            .env("GOCACHE", go_build)
            .env("GOTMPDIR", self.stage.join("tmp"))
            .env("GOFLAGS", "-mod=readonly -buildvcs=false");
        command
    }

    fn fetch_error(&self, said: &[String]) -> Error {
        let detail = reason(said);
        if detail.contains("checksum mismatch") || detail.contains("SECURITY ERROR") {
            return Error::Tampered {
                part: self.part.to_string(),
                detail,
            };
        }
        let network = [
            "dial tcp",
            "no such host",
            "i/o timeout",
            "connection re",
            "Get \"",
            "proxyconnect",
        ];
        let unreachable = |line: &&String| network.iter().any(|sign| line.contains(sign));
        if let Some(line) = said.iter().find(unreachable) {
            let (what, detail) = unreachable_module(line);
            return Error::Fetch {
                part: self.part.to_string(),
                what,
                detail,
            };
        }
        self.build_error(said)
    }

    fn build_error(&self, said: &[String]) -> Error {
        Error::Build {
            part: self.part.to_string(),
            detail: reason(said),
            log: self.log.to_path_buf(),
        }
    }
}

/// Settings under which Go does the same on every machine.
pub(crate) fn settle(command: &mut Command, go_path: PathBuf) {
    command
        .env("CGO_ENABLED", "0")
        .env("GOWORK", "off")
        .env("GO111MODULE", "on")
        .env_remove("GOOS")
        .env_remove("GOARCH");
    let homeless = |name: &str| env::var_os(name).is_none_or(|value| value.is_empty());
    if homeless("HOME") && homeless("GOPATH") {
        command.env("GOPATH", go_path);
    }
}

/// What could not be fetched and why, out of Go's `main.go:1:2: MODULE@VERSION: Get
/// "URL": dial tcp: lookup: network is unreachable`.
fn unreachable_module(line: &str) -> (String, String) {
    let module = line
        .split(": ")
        .find(|piece| piece.contains('@') && !piece.contains(['"', ' ']))
        .map_or_else(
            || "a Go module".to_owned(),
            |module| format!("Go module {module}"),
        );
    let why = line.rsplit(": ").next().unwrap_or(line);
    (module, why.to_owned())
}

/// The line of a tool's output that says most: the first one that is not a heading.
pub(crate) fn reason(said: &[String]) -> String {
    said.iter()
        .map(|line| line.trim())
        .find(|line| !line.is_empty() && !line.starts_with('#'))
        .unwrap_or("it said nothing")
        .to_owned()
}

/// Copies a folder with all that is in it.
pub(crate) fn copy_tree(from: &Path, to: &Path) -> Result<(), Error> {
    fs::create_dir_all(to).map_err(io("create", to))?;
    for entry in fs::read_dir(from).map_err(io("read", from))? {
        let entry = entry.map_err(io("read", from))?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            copy_tree(&source, &target)?;
        } else {
            fs::copy(&source, &target).map_err(io("copy", &source))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_that_cannot_be_reached_is_named_without_the_noise() {
        let line = r#"main.go:10:2: github.com/spf13/cobra@v1.9.1: Get "https://proxy.example/x.zip": dial tcp: lookup proxy.example on 10.0.0.1:53: connect: network is unreachable"#;
        let (what, why) = unreachable_module(line);
        assert_eq!(what, "Go module github.com/spf13/cobra@v1.9.1");
        assert_eq!(why, "network is unreachable");
        let (what, _) = unreachable_module("dial tcp: i/o timeout");
        assert_eq!(what, "a Go module");
    }

    #[test]
    fn the_reason_is_not_the_heading() {
        let said = ["# example.org/x", "", "x.go:1: undefined: y"].map(str::to_owned);
        assert_eq!(reason(&said), "x.go:1: undefined: y");
    }
}
