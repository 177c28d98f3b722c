// Package epoch tells whether a key was written through this router, which is what keeps
// a copy of a value from outliving it.
//
// Whoever wants to keep what a server answers (a near cache, a copy on another server, a
// flight that others join) notes the epoch of the key before asking, and keeps the answer
// only if the epoch is still the same. Epochs are shared by all loops, one word for many
// keys: a write also looks like a write of some other keys, which costs an answer that
// could have been kept, and nothing else.
package epoch
