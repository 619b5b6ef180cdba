// Package manifest knows the skills of this host: it reads their manifests, checks
// them, and hands out what the door and the catalogue need.
//
// A skill comes from one of three places, all of them the operator's:
//
//   - a folder with a skill.yaml, directly below a root (or the root itself);
//   - an entry of the skills: list in a skills.yaml at the top of a root, where
//     the key "name" is the id; without "type" it is run by the script of the CLI
//     folder that has its name, otherwise by the folder beside the list that does;
//   - a script {id}.py in the CLI folder, without any manifest: cli:python,
//     trusted, no schema, version 0.0.0, with the data folder and scratch granted.
//
// A manifest never decides its own trust. A skill with a problem is skipped and
// reported; it never keeps the host from starting. An id belongs to the first
// place that gives it, in the order of the roots, the CLI folder last.
//
// What is in a folder is read once, by Open: the digest is that of the files then.
package manifest
