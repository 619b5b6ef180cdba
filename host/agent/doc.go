// Package agent has models work for callers: it takes turns of conversations, in which a
// model calls skills as functions, and works on tasks, in rounds of JSON.
//
// # What is stored
//
// The message of a caller is stored before the model is asked, and each round (what the
// model said, and what its calls gave) before the next one begins, in one transaction:
// whatever stops in between, the conversation can continue. Each call of a tool is an
// execution on record, whose session is the conversation or the task. One turn at a time
// runs in a conversation: a second one on the same host is refused at once, and of two
// hosts the one that stores something later finds that the conversation has changed, and
// ends.
//
// # What a model says is not trusted
//
// A model is assumed to obey whatever text it reads. It can do no more than its caller,
// through the same dispatcher; it gets as many calls, tokens and fuel as the budget has,
// whatever it asks for; and what it makes up is made fit to be stored, shown and sent to
// another vendor's model: ids and names of calls, arguments that are not JSON, text that
// is not UTF-8 or too long.
//
// # Approvals
//
// A call that waits for an approval ends the turn. [Agent.Approve] continues it when
// everything that it waits for is decided; another message withdraws the calls. Nothing
// said in a conversation is an approval: the record of approvals decides who may decide,
// and the dispatcher asks that record again when the call is made.
package agent
