//! The file system of the sandbox for the shell.

use bashkit::{DirEntry, FileType, FsBackend, Metadata, Result, async_trait};
use std::collections::HashMap;
use std::ffi::{CString, c_char};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

/// Files of WASI, with permission bits, which WASI lacks: they are kept here, restrict nobody
/// and end with the run.
#[derive(Default)]
pub struct Files {
    modes: Mutex<HashMap<PathBuf, u32>>,
    entry: Arc<Mutex<PathBuf>>,
}

/// How much of /dev/urandom there is for one read: files are read whole.
const RANDOM: usize = 256 << 10;

/// Names of scripts: a file is executable if it begins with #!, and only these are looked into.
const SCRIPTS: [&str; 8] = ["", "sh", "bash", "py", "js", "mjs", "rb", "pl"];

impl Files {
    /// Where the path of the script is put that is run, which is executable in any case.
    pub fn entry(&self) -> Arc<Mutex<PathBuf>> {
        self.entry.clone()
    }

    fn metadata(&self, path: &Path, m: &std::fs::Metadata) -> Metadata {
        let kind = m.file_type();
        let file_type = if kind.is_dir() {
            FileType::Directory
        } else if kind.is_symlink() {
            FileType::Symlink
        } else {
            FileType::File
        };
        Metadata {
            size: if kind.is_dir() { 4096 } else { m.len() },
            mode: self.mode(path, &file_type, m.len()),
            modified: m.modified().unwrap_or(SystemTime::UNIX_EPOCH),
            created: m.created().unwrap_or(SystemTime::UNIX_EPOCH),
            file_type,
        }
    }

    fn mode(&self, path: &Path, kind: &FileType, size: u64) -> u32 {
        if let Some(mode) = self.modes.lock().expect("one thread").get(path) {
            return *mode;
        }
        match kind {
            FileType::Directory => 0o755,
            FileType::Symlink => 0o777,
            _ if *self.entry.lock().expect("one thread") == path => 0o755,
            _ if size > 2 && is_script(path) => 0o755,
            _ => 0o644,
        }
    }

    fn forget(&self, path: &Path) {
        self.modes.lock().expect("one thread").retain(|p, _| !p.starts_with(path));
    }
}

fn is_script(path: &Path) -> bool {
    let ending = path.extension().map_or("", |e| e.to_str().unwrap_or("?"));
    if path.starts_with("/data") || path.starts_with("/dev") || !SCRIPTS.contains(&ending) {
        return false;
    }
    let mut begin = [0; 2];
    std::fs::File::open(path).and_then(|mut f| f.read_exact(&mut begin)).is_ok() && &begin == b"#!"
}

#[async_trait]
impl FsBackend for Files {
    async fn read(&self, path: &Path) -> Result<Vec<u8>> {
        if path == Path::new("/dev/urandom") || path == Path::new("/dev/random") {
            let mut some = vec![0; RANDOM];
            std::fs::File::open("/dev/urandom")?.read_exact(&mut some)?;
            return Ok(some);
        }
        Ok(std::fs::read(path)?)
    }

    async fn write(&self, path: &Path, content: &[u8]) -> Result<()> {
        Ok(std::fs::write(path, content)?)
    }

    async fn append(&self, path: &Path, content: &[u8]) -> Result<()> {
        Ok(std::fs::OpenOptions::new().create(true).append(true).open(path)?.write_all(content)?)
    }

    async fn mkdir(&self, path: &Path, recursive: bool) -> Result<()> {
        Ok(if recursive { std::fs::create_dir_all(path)? } else { std::fs::create_dir(path)? })
    }

    async fn remove(&self, path: &Path, recursive: bool) -> Result<()> {
        let m = std::fs::symlink_metadata(path)?;
        match (m.is_dir(), recursive) {
            (true, true) => std::fs::remove_dir_all(path)?,
            (true, false) => std::fs::remove_dir(path)?,
            _ => std::fs::remove_file(path)?,
        }
        self.forget(path);
        Ok(())
    }

    async fn stat(&self, path: &Path) -> Result<Metadata> {
        Ok(self.metadata(path, &std::fs::symlink_metadata(path)?))
    }

    async fn read_dir(&self, path: &Path) -> Result<Vec<DirEntry>> {
        let mut list = vec![];
        for e in std::fs::read_dir(path)? {
            let e = e?;
            list.push(DirEntry { name: e.file_name().to_string_lossy().into(), metadata: self.metadata(&e.path(), &e.metadata()?) });
        }
        list.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(list)
    }

    async fn exists(&self, path: &Path) -> Result<bool> {
        Ok(std::fs::symlink_metadata(path).is_ok())
    }

    async fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        std::fs::rename(from, to)?;
        self.forget(to);
        let mut modes = self.modes.lock().expect("one thread");
        if let Some(mode) = modes.remove(from) {
            modes.insert(to.into(), mode);
        }
        Ok(())
    }

    async fn copy(&self, from: &Path, to: &Path) -> Result<()> {
        std::fs::copy(from, to)?;
        Ok(())
    }

    async fn symlink(&self, target: &Path, link: &Path) -> Result<()> {
        // The standard library has it for WASI on nightly toolchains only.
        unsafe extern "C" {
            fn symlink(target: *const c_char, link: *const c_char) -> i32;
        }
        let name = |p: &Path| CString::new(p.as_os_str().as_encoded_bytes()).map_err(std::io::Error::other);
        let (target, link) = (name(target)?, name(link)?);
        if unsafe { symlink(target.as_ptr(), link.as_ptr()) } != 0 {
            return Err(std::io::Error::last_os_error().into());
        }
        Ok(())
    }

    async fn read_link(&self, path: &Path) -> Result<PathBuf> {
        Ok(std::fs::read_link(path)?)
    }

    async fn chmod(&self, path: &Path, mode: u32) -> Result<()> {
        self.modes.lock().expect("one thread").insert(path.into(), mode);
        Ok(())
    }

    async fn set_modified_time(&self, path: &Path, time: SystemTime) -> Result<()> {
        Ok(std::fs::File::options().write(true).open(path)?.set_modified(time)?)
    }
}
