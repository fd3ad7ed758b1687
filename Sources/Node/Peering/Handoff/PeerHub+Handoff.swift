import Cluster
import Ground
import Telemetry

/// The touches sent to the owners of entries; each is sent at most once.
extension PeerHub {
    /// Sends touches to those owners of their entries that are other nodes.
    ///
    /// - Parameters:
    ///   - touches: the touches.
    ///   - second: the current second of this node's clock, from which their ages are computed.
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
