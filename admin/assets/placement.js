// Which server is looked at, and what would become of its keys.

import {$, ask, el, number, rows, share, text, ofPool} from './dom.js'
import {drawRing, drawStrip} from './picture.js'

let placement = null
let pinned = null
let hovered = null
let drawnFor
const watchers = []
const hint = $('effect').textContent

export const selected = () => hovered ?? pinned
export const onSelection = f => watchers.push(f)

export function pin(name) {
  pinned = pinned === name ? null : name
  changed()
}

export function preview(name) {
  hovered = name
  changed()
}

export function showPlacement(p) {
  placement = p
  drawnFor = undefined
  const kind = p?.distribution
  text($('distribution'), p ? `${kind}, ${number(p.total)} servers, digest ${p.digest}` : 'cannot be shown')
  changed()
}

function changed() {
  const name = selected()
  if (name === drawnFor) return
  drawnFor = name
  for (const f of watchers) f()
  if (placement) draw(name)
}

async function draw(name) {
  let p = placement
  if (name && !p.servers.some(s => s.name === name) && p.total > p.servers.length) {
    p = await ask(ofPool('/api/v1/placement?top=60&server=' + encodeURIComponent(name))).catch(() => p)
    if (selected() !== name) return
  }
  const server = p.servers.find(s => s.name === name)
  const picture = p.shape === 'ring' ? drawRing(p, server, {pin, preview}) : drawStrip(p, server, {pin, preview})
  $('picture').replaceChildren(picture)
  explain(p, name, server)
}

function explain(p, name, server) {
  const takers = server?.takers ?? []
  text($('effect'), !name ? hint : !server ? `${name} holds no keys.`
    : takers.length === 0 ? `${name} has all keys, and there is nowhere for them to go.`
      : `If ${name} fails, its ${share(server.share)} of the keys ${takers.length === 1 ? 'go' : 'are shared out and go'} to`)
  rows($('takers'), takers, t => t.server, () => el('li', {}, el('span'), el('span')), (e, t) => {
    text(e.children[0], t.server || `${number(t.servers)} others`)
    text(e.children[1], share(t.share))
  })
}

addEventListener('keydown', e => {
  if (e.key === 'Escape' && !document.querySelector('dialog[open]')) {
    pinned = hovered = null
    changed()
  }
})
