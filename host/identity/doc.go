// Package identity turns what a caller shows into the principal that the door knows: a
// person by a JWT, an agent by an API key, anyone else as anonymous where the operator
// allows that.
//
// [Authenticator.Authenticate] takes the values of headers as they came and knows no
// HTTP. Whoever is refused is refused with the same words, byte for byte, whatever was
// wrong: the reason is for the log alone, and what was shown is never in it.
//
// # Keys
//
// An API key is osk_<id>_<secret>: an id that may be shown, and 256 random bits with a
// checksum behind them, which tells a mistyped key from a wrong one without asking a
// database. What is kept is its SHA-256. A slow hash is for secrets that people choose:
// nobody tries 2^256 of them. A hash keyed with a secret of the host is not used, since
// it would be one more thing for all hosts of a database to share, and all keys would be
// lost with it; it would keep nobody out, for whoever can write to the table of keys can
// give his own key any tenant and scopes.
//
// A key that is rotated keeps its id, which is its holder's name in all records: its new
// secret works at once, the one before for an overlap, and any older one no more.
//
// A host knows keys by heart, and asks the database four times a second, while it is
// called, which ones have changed: what was created, rotated or revoked anywhere holds
// everywhere within half a second, for one query whatever the number of keys. Where the
// database cannot be asked, keys are believed until that half second is over and then
// refused with AUDIT_UNAVAILABLE: not with UNAUTHORIZED, or clients would throw good keys
// away, and calls could not go on record anyway.
//
// # Tokens
//
// A JWT is signed with HS256 and the operator's secret, or with RS256, ES256 or EdDSA and
// a key of the operator's key set (JWKS). The algorithm belongs to the kind of key, never
// to what the token says. exp and sub must be there, and iss and aud as the operator sets
// them; nbf and iat hold where they are. A key set belongs to an issuer that signs tokens for
// others too, so with one both must be set.
//
// [Claims] names the claims for tenant, scopes, roles and a name. Scopes that are not known
// here are dropped. A role is worth the scopes that the operator gives it, and nothing by
// its own name: an issuer's role admin is hardly the scope admin. A token without a tenant
// is of Options.Tenant, or refused: there is none that it could mean without seeing what is
// another's. Keys have no roles.
//
// Who somebody is says sub alone. The name is for people to read: issuers let users
// change theirs.
//
// Whoever issues tokens says who people are, but not that they are the operator of this
// machine, nobody, or a key: the tenants local and anonymous, subjects of these names and
// those that begin with key: are refused.
package identity
