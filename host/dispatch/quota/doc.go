// Package quota bounds what principals, tenants and skills may use, over all hosts of one
// database: calls a minute of a principal, a tenant and a skill, calls and fuel of a
// tenant a day (UTC), and calls at once of a principal and a tenant, which each host
// counts for itself, as the places are its own.
//
// A limit of n a minute is a bucket of n calls that fills up within a minute: as many may
// begin at once, and then one every 60/n seconds.
//
// # How hosts share a limit
//
// The database has what was used, and a call is counted there before it begins. That
// would be a round trip for each call, but for two things. Calls that wait are counted
// together, many in one transaction. And a host that has just read how much room there is
// lets a hundredth of it begin at once, and counts these calls within a tenth of a second.
// So hosts together begin at most 1 % of a limit too much each, and nothing too much of a
// limit below 100, where a hundredth is nothing: there, each call is counted first. What
// was read more than a second ago is good for one call; what was refused is refused from
// memory until there is room again.
//
// The other way would be to lend each host a part of the limit beforehand. What one host
// does not use is then missing to the others, most of all of small limits and of days, and
// how much to lend must be guessed. Counting first and reporting afterwards needs no guess.
//
// # Fuel
//
// What a call will use is not known when it begins, and its limit is often a hundred times
// that. So a call begins where what was used today, and what calls that run on this host
// may still use, leave something; what it did use is counted when it ends, on the day on
// which it ends. Each host can so go beyond the fuel of a day by the limit of one call, and
// by what others use within the tenth of a second in which it does not know of it.
//
// # A database that does not answer
//
// Nothing that would have to be counted first begins: callers get AUDIT_UNAVAILABLE, as
// they would a moment later, since calls cannot be put on record either. A host that is
// killed forgets at most what it had not reported.
package quota
