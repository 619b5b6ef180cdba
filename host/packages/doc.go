// Package packages keeps the packages of skills: pure Python wheels and npm packages that
// a folder of scripts declares, or that the operator names.
//
// Only the operator adds them ([Store.Add]), to folders and to uploads; a call downloads nothing. pip and npm resolve
// and download: from the index, mirror or folder that they are set up for. They are kept
// from running anything of a package (see pip.py and npm.go), and archives are unpacked by
// package admission. What came is locked by digest.
//
// In the state folder:
//
//	packages/archives/SHA256     each wheel and tarball, once
//	packages/sets/SHA256/        what the scripts of a folder see, once for the same packages
//	    python/                  in the place of site-packages
//	    node_modules/
//	packages/locks/NAME.json     the lock of one folder of a skill, by the folder's path
//
// A set never changes; its name is the digest of its files, which is compared before it
// is first used. The skill's own folder is left as it is.
package packages
