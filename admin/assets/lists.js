// Hot keys, the hand-over, the routers, and what has changed.

import {$, attr, bytes, clock, el, number, rate, rows, share, show, span, text} from './dom.js'
import {find} from './find.js'

export function showHotKeys(h) {
  const note = !h ? 'Keys are not counted here: pool.hot.enabled is false.' : h.keys.length === 0 ? 'No key stands out.' : ''
  text($('hot-note'), note)
  show($('hot-note'), note !== '')
  show($('hot').querySelector('table'), note === '')
  text($('hot-count'), h && h.hot > 0 ? `${number(h.hot)} hot` : '')
  rows($('hot-rows'), h?.keys ?? [], k => k.key, makeHot, updateHot)
}

function makeHot(k) {
  const name = el('button', {type: 'button', class: 'link find key', title: k.key}, k.key)
  name.addEventListener('click', () => find(k.key, true))
  return el('tr', {}, el('td', {}, name), el('td', {class: 'num'}), el('td', {class: 'num'}), el('td'))
}

function updateHot(row, k) {
  const [, requests, part, trend] = row.children
  text(requests, rate(k.rate))
  text(part, share(k.share))
  part.className = k.level === 'severe' ? 'num bad' : k.level === 'hot' ? 'num warn' : 'num'
  attr(part, 'title', `${k.level}, ${bytes(k.bytes)}/s, at ${k.server}`)
  text(trend, k.trend > 0.15 ? '↗ rising' : k.trend < -0.15 ? '↘ falling' : '→ steady')
  trend.className = 'state dim'
}

export function showHandover(h) {
  show($('handover-bar'), h.active)
  attr($('handover-bar'), 'aria-valuenow', Math.round(100 * h.progress))
  $('handover-bar').firstElementChild.style.width = 100 * h.progress + '%'
  text($('handover-text'), handoverText(h))
}

function handoverText(h) {
  const parts = []
  if (h.next.length) parts.push(`A placement of ${number(h.next.length)} servers begins within seconds.`)
  if (h.active) {
    if (h.came.length) parts.push(`${names(h.came)} took over keys.`)
    if (h.left.length) parts.push(`${names(h.left)} gave up keys.`)
    parts.push(`${share(h.moved_share)} of the keys have moved; for ${span(h.remaining_seconds)} more what is missing is fetched from where it was: ${rate(h.pulled_per_second)} a second.`)
  } else if (h.since) {
    parts.push(`None is under way. This placement is ${span((Date.now() - new Date(h.since)) / 1000)} old.`)
  } else {
    parts.push('None: servers are not watched, so keys stay where they are.')
  }
  return parts.join(' ')
}

function names(list) {
  return list.length <= 4 ? list.join(', ') : `${list.slice(0, 3).join(', ')} and ${number(list.length - 3)} others`
}

export function showRouters(r) {
  const routers = r?.routers ?? []
  text($('routers-note'), !r ? 'Servers are not watched, so there is nothing to agree on.'
    : routers.length === 0 ? 'This router is alone, and decides alone.'
      : `${number(r.present)} of ${number(r.known)} can be heard, ${number(r.voters)} vote.`)
  show($('routers-table'), routers.length > 0)
  rows($('router-rows'), routers, p => p.name, makeRouter, (row, p) => {
    const [words, level] = says(p)
    text(row.children[1], words)
    row.children[1].className = level
  })
}

const makeRouter = p => el('tr', {}, el('th', {scope: 'row'}, p.name), el('td'))

function says(p) {
  if (p.kind === 'self') return ['this one', 'dim']
  if (p.kind === 'agent') return ['announces servers', 'dim']
  if (!p.present) return [`silent for ${span(p.silent_seconds)}`, 'warn']
  if (!p.agrees) return ['places keys differently', 'bad']
  return [p.votes ? 'agrees' : 'agrees, does not vote', '']
}

const few = 12
let changes = []
let all = false

export function showChanges(c) {
  changes = c.changes
  drawChanges()
}

function drawChanges() {
  text($('changes-note'), 'Nothing has changed since the router was started.')
  show($('changes-note'), changes.length === 0)
  rows($('change-rows'), all ? changes : changes.slice(0, few), c => c.seq, makeChange, () => {})
  text($('all-changes'), all ? 'Show fewer' : `Show all ${number(changes.length)}`)
  attr($('all-changes'), 'aria-expanded', String(all))
  show($('all-changes'), changes.length > few)
}

function makeChange(c) {
  const wanted = c.to === 'in' || c.to === 'draining'
  const level = c.level === 'error' ? 'bad' : c.level === 'warn' && !wanted ? 'warn' : ''
  const [what, why] = [whatOf(c), whyOf(c)]
  const row = el('tr', {}, el('td', {}, el('time', {datetime: c.at, title: c.at}, clock(c.at))), el('td', {class: level, colspan: why ? false : 2}, what))
  if (why) row.append(el('td', {}, why))
  return row
}

function whatOf(c) {
  const move = c.from || c.to ? `${c.from} → ${c.to}` : ''
  if (c.server && move) return `${c.server}: ${move}`
  return c.server ? `${c.server}: ${c.what.replace(/^server /, '')}` : c.what[0].toUpperCase() + c.what.slice(1) + (move && ' ' + move)
}

function whyOf(c) {
  const details = Object.entries(c.details ?? {}).map(([k, v]) => `${k} ${v}`)
  return [c.reason, ...details].filter(Boolean).join(', ')
}

$('all-changes').addEventListener('click', () => {
  all = !all
  drawChanges()
})
