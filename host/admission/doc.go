// Package admission admits what strangers send: it turns an archive, or a module and
// its manifest, into a checked folder with a digest and a report, or refuses it.
//
// It knows no HTTP, no tenants and no store. Nothing of an upload is run or
// compiled here; modules are shown to a [Checker], which does that in a process
// that can be killed.
//
// An archive is a zip or a gzipped tar, told by its bytes. The rules for both:
//
//   - entries are files and folders with plain relative names; links, devices,
//     sparse files and everything else that is no file are refused, and so are
//     names that some file system would take for the same one;
//   - sizes are counted while bytes are unpacked, and no header is believed;
//   - every byte of the archive belongs to an entry or to the format: nothing may
//     stand before, between or behind, so that no other reader sees other files;
//   - permissions, times, owners, comments and empty folders are dropped: the same
//     files give the same digest, however they were packed;
//   - the files stand at the top, or all in one folder, which is left out.
package admission
