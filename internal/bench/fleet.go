package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/wso2/terraform-provider-dbaas/internal/instance"
)

// raise makes the instances that are planned.
func (b *bench) raise(ctx context.Context, p *proxy, n int) ([]*instance.Instance, error) {
	fleet := make([]*instance.Instance, n)
	err := parallel(n, func(i int) error {
		store, err := p.store()
		if err != nil {
			return err
		}
		fleet[i], err = store.Create(ctx, spec(fmt.Sprintf("bench-%04d", i)), func(*instance.Instance) {})
		if i%100 == 99 {
			fmt.Fprintf(os.Stderr, "%s %d instances\n", time.Now().Format(time.TimeOnly), i+1)
		}
		return err
	})
	return fleet, err
}

func lower(ctx context.Context, p *proxy, fleet []*instance.Instance) error {
	if err := p.reset(0); err != nil {
		return err
	}
	return parallel(len(fleet), func(i int) error {
		if fleet[i] == nil {
			return nil
		}
		store, err := p.store()
		if err != nil {
			return err
		}
		_, err = store.Delete(ctx, instance.DeleteRequest{Key: fleet[i].Key(), Intent: instance.IntentDestroy})
		return err
	})
}

// parallel does many things, a few at a time.
func parallel(n int, do func(i int) error) error {
	failed := make([]error, n)
	next := make(chan int)
	var workers sync.WaitGroup
	for range concurrency {
		workers.Go(func() {
			for i := range next {
				failed[i] = do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	workers.Wait()
	return errors.Join(failed...)
}
