// The servers as rows.

import {$, attr, clock, el, number, rate, rows, share, show, text, took} from './dom.js'
import {askDrain} from './actions.js'
import {onSelection, pin, preview, selected} from './placement.js'

export function showServers(s, actions) {
  const bounded = s.servers.some(x => x.bound > 0)
  const most = Math.max(1, ...s.servers.map(x => x.requests_per_second))
  const few = s.shown < s.total
  text($('servers-note'), `${number(s.shown)} of ${number(s.total)} servers: those with the highest load, and ${number(s.troubled_shown)} of the ${number(s.troubled)} in trouble.`)
  show($('servers-note'), few)
  rows($('rows'), s.servers, x => x.name, make, (row, x) => update(row, x, bounded, most, actions))
}

function make(server) {
  const name = el('button', {type: 'button', class: 'name', 'aria-pressed': 'false'}, server.name)
  const row = el('tr', {},
    el('th', {scope: 'row', class: 'server'}, name, el('span', {class: 'addr'})),
    el('td', {class: 'state'}, el('span'), el('span', {class: 'why'})),
    el('td', {class: 'load'}, el('span', {class: 'loadtext'}), el('span', {class: 'bar', 'aria-hidden': 'true'}, el('span'))),
    el('td', {class: 'num'}),
    el('td', {class: 'num wide'}),
    el('td', {class: 'num mid'}),
    el('td', {class: 'num wide'}),
    el('td', {class: 'num'}))
  name.addEventListener('click', () => pin(server.name))
  name.addEventListener('focus', () => preview(server.name))
  name.addEventListener('blur', () => preview(null))
  row.addEventListener('pointerenter', e => e.pointerType === 'mouse' && preview(server.name))
  row.addEventListener('pointerleave', () => preview(null))
  return row
}

function update(row, s, bounded, most, actions) {
  const [head, state, load, requests, p99, keys, penalty, action] = row.children
  text(head.children[1], s.address === s.name ? '' : s.address)
  text(state.children[0], stateOf(s))
  state.children[0].className = s.trouble === 'trouble' ? 'bad' : s.trouble === 'warning' ? 'warn' : ''
  text(state.children[1], whyOf(s))
  const [words, bar] = load.children
  text(words, bounded ? `${number(s.load)} of ${number(s.bound)}` : number(s.load))
  bar.firstElementChild.style.width = 100 * Math.min(1, bounded ? s.load / Math.max(1, s.bound) : s.requests_per_second / most) + '%'
  bar.classList.toggle('full', bounded && s.load >= s.bound && s.load > 0)
  text(requests, rate(s.requests_per_second))
  text(p99, took(s.p99_seconds))
  text(keys, share(s.key_share))
  text(penalty, s.penalty ? number(s.penalty) : '–')
  drainButton(action, s, actions)
  highlight(row, s.name)
}

// stateOf is what the routers have agreed on and what this one sees, in as few words as say it.
function stateOf(s) {
  if (s.may_stop && s.status === 'draining') return 'drained, may be stopped'
  if (s.status !== 'in') return s.health === 'up' || s.health === 'down' ? s.status : `${s.status}, ${s.health}`
  return s.health === 'slow start' && s.ramp < 1 ? `slow start, ${share(s.ramp)}` : s.health
}

function whyOf(s) {
  const parts = []
  if (s.why && s.trouble) parts.push(s.why)
  if (s.held_until) parts.push('held until ' + clock(s.held_until))
  if (s.missed_keys) parts.push(`missed ${number(s.missed_keys)} writes`)
  return parts.join('; ')
}

function drainButton(cell, s, actions) {
  const what = actions === 'none' ? '' : s.status === 'draining' ? 'Undrain' : s.weight > 0 ? 'Drain' : ''
  let b = cell.firstElementChild
  if (!what) {
    b?.remove()
    return
  }
  if (!b) {
    b = el('button', {type: 'button', class: 'small'})
    b.addEventListener('click', () => askDrain(s.name, b.textContent === 'Undrain'))
    cell.append(b)
  }
  text(b, what)
  attr(b, 'aria-label', `${what} ${s.name}`)
}

function highlight(row, name) {
  row.classList.toggle('selected', selected() === name)
  attr(row.querySelector('.name'), 'aria-pressed', String(selected() === name))
}

onSelection(() => {
  for (const row of $('rows').children) highlight(row, row.dataset.key)
})
