package top

// part is a part of the lower half: a head, and rows of which there may be more than room.
type part struct {
	rows int
	head func(l *line, shown int)
	row  func(l *line, i int)
}

// parts draws those that are asked for into so many lines.
func (p *page) parts(room int) {
	all := []part{p.servers(), p.hotKeys(), p.routers(), p.changes()}
	if f := p.view.Focus; f > 0 {
		p.alone(all[f-1], room)
		return
	}
	rows, gap := deal(all, room)
	for i, part := range all {
		if i > 0 && gap {
			p.blank()
		}
		p.put(func(l *line) { part.head(l, rows[i]) })
		for j := range rows[i] {
			p.put(func(l *line) { part.row(l, j) })
		}
	}
}

// alone draws one part into so many lines, from the row on to which it was scrolled.
func (p *page) alone(one part, room int) {
	v := p.view
	v.room = max(0, min(one.rows, room-1))
	p.more = one.rows - v.room
	v.Scroll = max(0, min(v.Scroll, p.more))
	p.put(func(l *line) { one.head(l, one.rows) })
	for i := range v.room {
		p.put(func(l *line) { one.row(l, v.Scroll+i) })
	}
}

// ease is how many rows there should be before blank lines part the parts.
const ease = 8

// deal shares lines out: one row for each part in turn, two for the first, while they want any.
func deal(all []part, room int) (rows []int, gap bool) {
	rows = make([]int, len(all))
	room -= len(all) // heads
	if gap = room >= ease+len(all)-1; gap {
		room -= len(all) - 1
	}
	for more := true; more && room > 0; {
		more = false
		for i, part := range all {
			turn := 1
			if i == 0 {
				turn = 2
			}
			turn = min(turn, room, part.rows-rows[i])
			rows[i] += turn
			room -= turn
			more = more || turn > 0
		}
	}
	return rows, gap
}

// none is a part of which there is nothing to show.
func none(name, why string) part {
	return part{head: func(l *line, _ int) {
		l.add(bold, name)
		l.add(dim, " "+why)
	}}
}
