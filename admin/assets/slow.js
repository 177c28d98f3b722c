// The last requests that took long.

import {$, clock, el, number, rows, show, text, took} from './dom.js'

export function showSlow(s) {
  show($('slow'), s !== null)
  if (!s) return
  text($('slow-count'), `over ${took(s.over_seconds)}: ${number(s.total)}`)
  show($('slow-note'), s.requests.length === 0)
  text($('slow-note'), 'None yet.')
  show($('slow-table'), s.requests.length > 0)
  rows($('slow-rows'), s.requests, r => r.time + r.client + r.key + r.seconds, make, () => {})
}

function make(r) {
  const request = el('td', {}, `${r.verb} `, el('span', {class: 'key', title: r.key}, r.key))
  if (r.keys > 1) request.append(` and ${number(r.keys - 1)} more`)
  if (r.outcome === 'gone' || r.outcome === 'error') request.append(' ', el('span', {class: 'bad'}, r.outcome))
  return el('tr', {title: `${r.client}, ${r.decided}, ${r.outcome}`},
    el('td', {}, el('time', {datetime: r.time, title: r.time}, clock(r.time))),
    request,
    el('td', {}, r.server || '–'),
    el('td', {class: 'num wide'}, took(r.sent)),
    el('td', {class: 'num wide'}, took(r.sent === null || r.answered === null ? null : r.answered - r.sent)),
    el('td', {class: 'num'}, took(r.seconds)))
}
