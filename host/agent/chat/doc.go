// Package chat is a conversation with a model that can call skills. One message of the
// caller is one turn: the model is asked, the tools that it asks for are called through
// the door, it is told what they gave, and so on until it has an answer or a limit is
// reached.
//
// # What is kept
//
// The message is kept before the model is asked, and each round (what the model said, and
// what its calls gave) before the next one begins, in one step: whoever stops in between,
// the conversation can be gone on with. Each call of a tool is an execution on record,
// whose session is the conversation. One turn at a time goes on in a conversation: a
// second one on the same host is refused at once, and of two hosts the one that keeps
// something later finds that the conversation has changed, and ends.
//
// # How a turn ends
//
// With an [Answer], also where a limit ended it: [Answer.StopReason] says which, and
// Answer is then what the model said last, or a sentence of the host's. With an error
// where there is no model, no database, no caller any more, or a fault of the host's own;
// what was complete by then is kept. When it returns nothing of it runs any more.
//
// # What a model says is not trusted
//
// A model is assumed to obey whatever text it reads. It can do no more than its caller,
// through the same door; it gets as many calls, tokens and fuel as the budget has,
// whatever it asks for; and what it makes up is made fit to be kept, shown and sent to
// another vendor's model: ids and names of calls, arguments that are no JSON, text that is
// no UTF-8 or too long.
//
// # Approvals
//
// A call that waits for an approval ends the turn. [Chat.Approve] goes on with it when
// everything that it waits for is decided; another message withdraws the calls. An
// approval is never given by what is said in a conversation: the record of approvals
// decides who may decide, and the door asks that record again when the call is made.
package chat
