// The placement as a picture: a strip of shares for tables, a ring for rings. What they show is said in words beside
// them, so each is one image to a screen reader; the keyboard reaches the servers in their table.

import {el, share, svg} from './dom.js'

function watch(e, name, {pin, preview}) {
  e.addEventListener('pointerenter', ev => ev.pointerType === 'mouse' && preview(name))
  e.addEventListener('click', () => pin(name))
}

function describe(p, server) {
  const largest = [...p.servers].sort((a, b) => b.share - a.share).slice(0, 8)
  const shares = largest.map(s => `${s.name} ${share(s.share)}`).join(', ')
  return `Shares of the keys: ${shares}` + (p.total > largest.length ? ' and smaller ones.' : '.') +
    (server ? ` ${server.name} is selected.` : '')
}

// drawStrip has the shares of now on top, those without a server below, and between them where its keys go.
export function drawStrip(p, server, actions) {
  const box = el('div', {role: 'img', 'aria-label': describe(p, server)})
  box.append(strip(p, server, actions))
  if (server?.takers.length) box.append(ribbons(p, server), after(p, server))
  box.addEventListener('pointerleave', () => actions.preview(null))
  return box
}

function strip(p, server, actions) {
  const bar = el('div', {class: 'strip'})
  for (const s of p.servers) {
    const piece = el('span', {class: s === server ? 'on' : '', title: `${s.name}: ${share(s.share)}`}, el('b', {}, s.share > 0.06 ? s.name : ''))
    piece.style.flex = `${s.share} 0 0`
    watch(piece, s.name, actions)
    bar.append(piece)
  }
  bar.append(others(p))
  return bar
}

// others is the piece of the servers that are not named.
function others(p) {
  const piece = el('span', {title: `${p.total - p.servers.length} others: ${share(p.others_share)}`}, el('b', {}, p.others_share > 0.1 ? `${p.total - p.servers.length} others` : ''))
  piece.style.flex = `${p.others_share} 0 0`
  piece.hidden = p.others_share === 0
  return piece
}

// gains is what each server takes over, as a share of all keys; takers that are not named share what is theirs by size.
function gains(p, server) {
  const named = new Map(server.takers.map(t => [t.server, t.share * server.share]))
  const rest = named.get('') ?? 0
  const unnamed = p.servers.filter(s => s !== server && !named.has(s.name))
  const size = unnamed.reduce((sum, s) => sum + s.share, p.others_share) || 1
  const all = p.servers.filter(s => s !== server).map(s => ({
    name: s.name, share: s.share, gain: named.get(s.name) ?? rest * s.share / size,
  }))
  if (p.others_share > 0) all.push({name: '', share: p.others_share, gain: rest * p.others_share / size})
  return all
}

function after(p, server) {
  const bar = el('div', {class: 'strip after'})
  for (const g of gains(p, server)) {
    const grown = el('i')
    grown.style.width = 100 * g.gain / ((g.share + g.gain) || 1) + '%'
    const piece = el('span', {title: `${g.name}: ${share(g.share + g.gain)}`}, el('b', {}, g.share + g.gain > 0.06 ? g.name : ''), grown)
    piece.style.flex = `${g.share + g.gain} 0 0`
    bar.append(piece)
  }
  return bar
}

function ribbons(p, server) {
  const picture = svg('svg', {class: 'ribbons', viewBox: '0 0 1000 46', preserveAspectRatio: 'none'})
  let from = 0
  for (const s of p.servers) {
    if (s === server) break
    from += 1000 * s.share
  }
  let to = 0
  for (const g of gains(p, server)) {
    to += 1000 * g.share
    const width = 1000 * g.gain
    picture.append(svg('path', {d: `M${from},0C${from},26 ${to},20 ${to},46H${to + width}C${to + width},20 ${from + width},26 ${from + width},0Z`}))
    from += width
    to += width
  }
  return picture
}

// drawRing has the servers' arcs outside, and inside, where a server's arcs are, who takes them.
export function drawRing(p, server, actions) {
  const picture = svg('svg', {class: 'ring', viewBox: '-110 -110 220 220', role: 'img', 'aria-label': describe(p, server)})
  const chosen = p.servers.indexOf(server)
  p.servers.forEach((s, i) => {
    const arcs = svg('path', {d: arcsOf(p.cells, c => c === i, 92), class: i === chosen ? 'on' : 's' + i % 5, 'stroke-width': 22, fill: 'none'}, title(`${s.name}: ${share(s.share)}`))
    watch(arcs, s.name, actions)
    picture.append(arcs)
  })
  if (p.others_share > 0) picture.append(svg('path', {d: arcsOf(p.cells, c => c === -1, 92), class: 's0', 'stroke-width': 22, fill: 'none'}))
  if (server) {
    p.servers.forEach((s, i) => {
      const d = arcsOf(p.cells, (c, at) => c === chosen && p.taker_cells[at] === i, 70)
      if (d) picture.append(svg('path', {d, class: 's' + i % 5, 'stroke-width': 12, fill: 'none'}, title(`to ${s.name}`)))
    })
    picture.append(svg('text', {y: -2}, share(server.share)), svg('text', {y: 14, class: 'small'}, 'of the keys'))
  } else {
    picture.append(svg('text', {y: 4}, `${p.total} servers`))
  }
  picture.addEventListener('pointerleave', () => actions.preview(null))
  return picture
}

const title = s => svg('title', {}, s)

// arcsOf makes one path of all cells that are wanted, neighbours joined.
function arcsOf(cells, wanted, radius) {
  let d = ''
  for (let i = 0; i < cells.length; i++) {
    if (!wanted(cells[i], i)) continue
    const first = i
    while (i + 1 < cells.length && wanted(cells[i + 1], i + 1)) i++
    d += arc(first / cells.length, (i + 1) / cells.length, radius)
  }
  return d
}

function arc(from, to, radius) {
  if (to - from > 0.999) return arc(0, 0.5, radius) + arc(0.5, 1, radius)
  const at = x => `${(radius * Math.sin(2 * Math.PI * x)).toFixed(2)},${(-radius * Math.cos(2 * Math.PI * x)).toFixed(2)}`
  return `M${at(from)}A${radius},${radius} 0 ${to - from > 0.5 ? 1 : 0} 1 ${at(to)}`
}
