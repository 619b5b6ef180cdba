// Package sandbox is what every runner on our engine does for a call: it shows
// the guest its files, and tells how the run ended in the words of package skill.
//
// A guest's root is read-only and holds /skill (the skill's folder), /data (the
// operator's folder, if granted) and /work (memory, if granted). The working
// directory is "/", so ./data/x and /data/x are one file.
//
// Folders of the host are opened once and kept, because opening them costs more
// than a small guest's whole run: see [Folders]. Skills are started once, and their
// calls begin where the start-up is over: see [Images].
package sandbox
