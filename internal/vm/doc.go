// Package vm says how an instance looks as a virtual machine: the object that
// is wanted, and what an observed one means. It talks to nothing.
package vm
