// Package remote runs skills that are somewhere else: on another host of openSkill, or
// in any program that answers the same request. It is the runner http.
//
// The entry is a file of JSON that says where:
//
//	{"url": "https://tools.example.com/skills/echo:invoke", "headers": {"X-API-Key": "${TOOLS_KEY}"}}
//
// A run is one POST of {"input": …} there, with the call's trace id in X-Trace-Id, and traceparent where the host makes traces. The
// body of the answer is what a guest here would print: the data, or a whole result. A
// status of 2xx is the exit code 0, any other is 1. It is sent once, since nobody here
// knows whether it may be sent twice.
//
// The request is made by what makes those of guests, so that it goes where manifest and
// operator both permit, and nowhere else. ${NAME} in the value of a header stands for a
// variable that the operator has granted, and is how a key gets there.
//
// Of limits, time and output hold. Fuel and memory are those of another machine, and no
// digest is that of its code: like native code it is for skills in folders of the
// operator's own.
package remote
