use crate::call::{Call, Level};
use crate::errors::{codes, Failure};
use serde_json::json;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Where data and work are: in the sandbox at the root, which is also its working
/// directory.
pub(crate) const ROOT: &str = if cfg!(target_os = "wasi") { "/" } else { "." };

/// Error numbers, some of which io::ErrorKind has no stable name for: those that mean
/// that there is no such file, and those that mean a link.
#[cfg(target_os = "wasi")]
const ERRORS: (&[i32], &[i32]) = (&[44, 54, 37], &[32, 63, 76]); // ENOENT ENOTDIR ENAMETOOLONG, ELOOP EPERM ENOTCAPABLE
#[cfg(any(target_os = "linux", target_os = "android"))]
const ERRORS: (&[i32], &[i32]) = (&[2, 20, 36], &[40, 1]);
#[cfg(not(any(target_os = "wasi", target_os = "linux", target_os = "android")))]
const ERRORS: (&[i32], &[i32]) = (&[2, 20, 63], &[62, 1]); // as macOS has them

impl Call {
    /// The bytes of a file of the data folder. The path is as callers give it,
    /// ./data/docs/a.txt; one that is absolute or could lead out of the folder is
    /// FORBIDDEN_PATH before anything is opened. Links are not followed.
    pub fn read_data(&self, path: &str) -> Result<Vec<u8>, Failure> {
        let fault = |code: &str, reason: &str, message: &str| {
            let path: String = path.chars().take(200).collect();
            Failure::new(code, message).with(json!({ "path": path, "reason": reason }))
        };
        let link = || fault(codes::FORBIDDEN_PATH, "link", "links in ./data are not followed");
        let parts = data_path(path).ok_or_else(|| {
            fault(
                codes::FORBIDDEN_PATH,
                "outside_data",
                "a path must be relative and in ./data, without .., backslashes and control characters, as ./data/docs/a.txt",
            )
        })?;
        let granted = self.root.as_ref().filter(|root| root.join("data").is_dir());
        let mut at = match granted {
            Some(root) => root.clone(),
            None => {
                let message = "this skill was given no ./data folder to read";
                return Err(Failure::because(codes::INTERNAL, "no_data", message));
            }
        };
        let unreadable = |err: io::Error| match err.raw_os_error() {
            Some(number) if ERRORS.0.contains(&number) => {
                fault(codes::NOT_FOUND, "not_found", "there is no such file in ./data")
            }
            Some(number) if ERRORS.1.contains(&number) => link(),
            _ => {
                self.log(Level::Error, "reading ./data", json!({ "why": err.to_string() }));
                fault(codes::INTERNAL, "unreadable", "the file in ./data could not be read")
            }
        };
        for (i, part) in parts.iter().enumerate() {
            at.push(part);
            // The host may have put a link at data.
            let look = if i == 0 { fs::metadata(&at) } else { fs::symlink_metadata(&at) };
            let kind = look.map_err(unreadable)?.file_type();
            if kind.is_symlink() {
                return Err(link());
            }
            if i == parts.len() - 1 && !kind.is_file() {
                return Err(fault(codes::INVALID_ARGUMENT, "no_file", "the path in ./data is not a file"));
            }
        }
        fs::read(&at).map_err(unreadable)
    }

    /// Writes a file that becomes an artifact of the call, in the place of an earlier one
    /// of the name. The skill must have been granted scratch space.
    pub fn write_artifact(&self, name: &str, content: impl AsRef<[u8]>) -> Result<(), Failure> {
        if name.is_empty() || name == "." || name.contains("..") || name.contains('/') || odd(name) || name.len() > 200
        {
            return Err(Failure::because(
                codes::FORBIDDEN_PATH,
                "name",
                "an artifact's name must be one file name of at most 200 bytes, without slashes, backslashes and control characters, as report.csv",
            ));
        }
        let work =
            match self.root.as_ref().map(|root| root.join("work")).filter(|work: &std::path::PathBuf| work.is_dir()) {
                Some(work) => work,
                None => {
                    let message = "this skill was given no scratch space to write to";
                    return Err(Failure::because(codes::INTERNAL, "no_scratch", message));
                }
            };
        write(&work.join(name), content.as_ref()).map_err(|err| {
            self.log(Level::Error, "writing an artifact", json!({ "why": err.to_string() }));
            let message = "the artifact could not be written; the scratch space may be full";
            Failure::because(codes::INTERNAL, "unwritable", message)
        })
    }
}

/// Leaves the whole file, or none.
fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = fs::File::create(path)?;
    let written = file.write_all(content);
    if written.is_err() {
        let _ = fs::remove_file(path); // half an artifact is none
    }
    written
}

/// A path of the data folder in its parts, the first one data; None if it is none.
fn data_path(path: &str) -> Option<Vec<&str>> {
    // Any "..", also within a name: the host has the same rule.
    if path.starts_with('/') || path.contains("..") || path.chars().count() > 1024 || odd(path) {
        return None;
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    match parts.first() {
        Some(&"data") => Some(parts),
        _ => None,
    }
}

/// Whether a name has a backslash or a control character.
fn odd(name: &str) -> bool {
    name.chars().any(|c| c < ' ' || c == '\u{7f}' || c == '\\')
}
