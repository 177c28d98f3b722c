package main

type peersCommand struct{}

func (c *peersCommand) Run() error { return nil }
