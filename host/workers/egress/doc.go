// Package egress makes the HTTP requests of guests, for them and under the
// operator's rules: a guest never has a socket.
//
// # What is checked, in this order
//
//   - The address has one spelling; everything else is refused, not corrected
//     ([skill.ParseHTTPOrigin]). There is no user and no fragment, and no path with
//     "." or "..".
//   - A rule of the call permits method, scheme, host, port and path. Rules are what
//     the manifest asks and the operator allows.
//   - The name is resolved once. Every address that comes back must be public: not
//     of this machine, its networks, a cloud's metadata, or IPv6 that holds IPv4.
//     Only an address that the rule itself spells out may be any.
//   - The connection goes to one of the addresses that were checked, and that is
//     looked at once more when it is made. What the name means a moment later is of
//     no matter.
//   - A redirect is a new request: everything from the top, at most three times. To
//     another origin it takes no header along that could be a secret.
//
// # Secrets
//
// A script may have a placeholder for a value that it must not know ([skill.Secret]). Requests to
// the places that the secret is for are sent with the value: in the URL, in headers, in the
// password of basic authentication, and in the body. Every hop of a redirect is looked at by
// itself. In the response, in each form in which the value is sent, it is replaced by the
// placeholder; other encodings, and pieces of it, are not seen.
//
// # What is bounded
//
// The requests of a run, each one's time, the bytes of request, headers and
// response: see [Options]. The bytes of a response are those of the network: nothing
// is decompressed here. No connection is used twice, no proxy is asked, no cookie kept.
package egress
