package main

type devCmd struct{}

// Run is a placeholder until the embedded server lands.
func (c *devCmd) Run(s streams) error { return nil }
