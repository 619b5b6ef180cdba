// Package share carries skills between machines: a skill's folder becomes an OCI artifact
// in a registry or a bundle, and one of those becomes a folder again, or is refused.
//
// An artifact is an image manifest of type [ArtifactType] with an empty config, the
// files as one archive, and perhaps a signature:
//
//	layer 0   application/vnd.openskill.skill.archive.v1+zip, as [admission.PackSome] writes it
//	layer 1   application/vnd.openskill.skill.signature.v1, a minisign signature
//
// Nothing that comes back is believed. What is read is bounded before it is read; the
// signature is verified before anything is unpacked; the archive goes through the same
// admission as an upload; and the digest of the files must be the one that was signed.
// Only then does anything change in the folder that it was pulled into, and at once.
//
// The protocol is oras', the signatures are minisign's.
package share
