// The page follows /api/v1/events: one message a second has what changes all the time. The placement and the list of
// changes are asked for when a message says that they are others.

import {ask, ofPool} from './dom.js'
import {showHealth, showStale} from './health.js'
import {showServers} from './servers.js'
import {showPlacement} from './placement.js'
import {showChanges, showHandover, showHotKeys, showRouters} from './lists.js'
import {showSlow} from './slow.js'
import {prepareFind} from './find.js'
import {prepareActions, showActions} from './actions.js'

let seen = {digest: null, changes: -1, at: 0}
let drawn = false

function take(message) {
  if (message.error) {
    showStale('The router is too busy to be asked: ' + message.error)
    return
  }
  seen.at = performance.now()
  showStale('')
  showHealth(message.overview)
  showActions(message.overview)
  showServers(message.servers, message.overview.actions)
  showHotKeys(message.hotkeys)
  showHandover(message.handover)
  showRouters(message.routers)
  showSlow(message.slow)
  refresh(message.overview)
  if (!drawn) {
    drawn = true
    requestAnimationFrame(() => performance.mark('first-figure'))
  }
}

// refresh asks for what changes rarely.
function refresh(overview) {
  if (overview.digest !== seen.digest) {
    seen.digest = overview.digest
    ask(ofPool('/api/v1/placement?top=60')).then(showPlacement).catch(() => showPlacement(null))
  }
  if (overview.changes_seq !== seen.changes) {
    seen.changes = overview.changes_seq
    ask('/api/v1/changes').then(showChanges).catch(() => { seen.changes = -1 })
  }
}

function listen() {
  const events = new EventSource(ofPool('/api/v1/events'))
  events.onmessage = m => take(JSON.parse(m.data))
  events.onerror = () => {
    if (events.readyState !== EventSource.CLOSED) return // it tries again by itself
    events.close()
    setTimeout(listen, 3000)
  }
}

// A figure that is old must not look like one of now.
setInterval(() => {
  const age = (performance.now() - seen.at) / 1000
  if (seen.at && age > 4) showStale(`The router has not been heard for ${Math.round(age)} s: these figures are old.`)
}, 1000)

prepareFind()
prepareActions()
listen()
