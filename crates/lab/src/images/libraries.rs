//! Which shared libraries a program needs, by asking the system's `ldd`.

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::{Error, error::io};

/// The first bytes of every program we can wrap.
const ELF: &[u8; 4] = b"\x7fELF";

/// The loader and libraries of a program; none for a static one.
pub(crate) fn of(program: &Path) -> Result<Vec<PathBuf>, Error> {
    if !is_elf(program)? {
        return Ok(Vec::new());
    }
    let output = Command::new("ldd")
        .arg(program)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .map_err(io("run ldd on", program))?;
    // For a static program ldd fails and prints no library: that is the answer.
    parse(program, &String::from_utf8_lossy(&output.stdout))
}

fn is_elf(program: &Path) -> Result<bool, Error> {
    let mut start = [0; 4];
    let mut file = File::open(program).map_err(io("read", program))?;
    Ok(file.read_exact(&mut start).is_ok() && &start == ELF)
}

/// Reads `libm.so.6 => /lib/libm.so.6 (0x…)` and `/lib64/ld.so (0x…)`.
fn parse(program: &Path, text: &str) -> Result<Vec<PathBuf>, Error> {
    let mut libraries = Vec::new();
    for line in text.lines().map(str::trim) {
        let place = match line.split_once(" => ") {
            Some((name, "not found")) => {
                return Err(Error::Library {
                    program: program.to_path_buf(),
                    library: name.to_owned(),
                });
            }
            Some((_, place)) => place,
            None => line,
        };
        let path = place.split(" (").next().unwrap_or(place);
        if path.starts_with('/') {
            libraries.push(PathBuf::from(path));
        }
    }
    Ok(libraries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loader_and_the_libraries_are_found_and_the_kernels_is_not() {
        let text = "\tlinux-vdso.so.1 (0x00007f86)\n\tlibm.so.6 => /lib/libm.so.6 (0x7f)\n\t/lib64/ld-linux-x86-64.so.2 (0x7f)\n";
        let found = parse(Path::new("/x"), text).unwrap();
        assert_eq!(
            found,
            [
                PathBuf::from("/lib/libm.so.6"),
                "/lib64/ld-linux-x86-64.so.2".into()
            ]
        );
    }

    #[test]
    fn a_static_program_needs_none() {
        for text in ["\tstatically linked\n", ""] {
            assert!(parse(Path::new("/x"), text).unwrap().is_empty());
        }
    }

    #[test]
    fn a_library_that_is_missing_is_named() {
        let error = parse(Path::new("/x/nft"), "\tlibnft.so.1 => not found\n").unwrap_err();
        assert!(error.to_string().contains("libnft.so.1"), "{error}");
    }
}
