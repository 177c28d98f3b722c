// The sentence on top, and the figures under it.

import {$, attr, number, rate, rows, share, show, span, svg, text, el, took} from './dom.js'

const history = {requests: [], p99: []}
const length = 120 // seconds that the small curves go back

export function showHealth(o) {
  attr($('health'), 'data-level', o.level)
  text($('sentence'), o.sentence)
  rows($('problems'), o.problems.slice(1), p => p.text, () => el('li'), (e, p) => {
    text(e, p.text)
    e.className = p.level
  })
  document.title = (o.level === 'well' ? '' : o.level === 'trouble' ? '✖ ' : '▲ ') + 'cacherouter ' + o.router
  text($('router'), o.router)
  rows($('pools'), o.pools ?? [], p => p, p => el('a', {href: '?pool=' + encodeURIComponent(p)}, p), (e, p) => attr(e, 'aria-current', p === o.pool ? 'page' : null))
  text($('uptime'), 'Up ' + span((new Date(o.at) - new Date(o.started)) / 1000))
  showFigures(o)
}

function showFigures(o) {
  text($('f-requests'), rate(o.requests_per_second))
  text($('f-hits'), o.hit_ratio === null ? '–' : share(o.hit_ratio))
  text($('f-keys'), `${rate(o.keys_per_second)} keys read, ${rate(o.writes_per_second)} writes`)
  text($('f-p50'), took(o.p50_seconds))
  text($('f-p99'), took(o.p99_seconds))
  text($('f-failed'), rate(o.failed_per_second))
  $('f-failed').className = o.failed_per_second > 0 ? 'bad' : ''
  text($('f-clients'), number(o.clients))
  text($('f-busy'), `loops busy ${share(o.loops_busy)}`)
  curve($('s-requests'), history.requests, o.requests_per_second, 'Requests a second', rate)
  curve($('s-p99'), history.p99, o.p99_seconds ?? 0, '99th percentile', took)
}

// curve draws the last figures from left to right; the newest is at the right edge.
function curve(picture, past, now, name, write) {
  past.push(now)
  if (past.length > length) past.shift()
  if (past.length < 2) return
  const top = Math.max(...past) || 1
  const points = past.map((v, i) => `${length - past.length + i + 1},${(27 - 25 * v / top).toFixed(1)}`)
  if (!picture.firstChild) picture.append(svg('path', {class: 'area'}), svg('path'))
  const [area, line] = picture.children
  attr(line, 'd', 'M' + points.join('L'))
  attr(area, 'd', `M${length - past.length + 1},28L${points.join('L')}L${length},28Z`)
  attr(picture, 'aria-label', `${name} over ${past.length} seconds: ${write(Math.min(...past))} to ${write(top)}, now ${write(now)}`)
}

export function showStale(why) {
  text($('stale'), why)
  show($('stale'), why !== '')
  document.body.classList.toggle('stale', why !== '')
}
