import Cluster
import Ground
import Telemetry

/// Touches on their way to those who keep the entries; each is sent once at most.
extension PeerHub {
    /// Sends `touches`, of this node's second `second`, to the owners of their entries, as far as
    /// they are other nodes.
    func sendTouches(_ touches: [Touch], second: UInt32) {
        let (view, ring) = (view, ringUpdater.ring)
        var batches: [NodeID: [AgedTouch]] = [:]
        for touch in touches {
            for owner in ring.owners(of: touch.digest).prefix(replicas) where owner != ownID {
                batches[owner, default: []].append(AgedTouch(touch, now: second))
            }
        }
        for (owner, batch) in batches {
            guard let connection = view.connections[owner] else {
                counters.add(.touchesLost, batch.count)
                continue
            }
            connection.send(batch)
        }
    }
}
