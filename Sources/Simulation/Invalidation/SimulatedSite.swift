import Cluster
import Ground

/// What all worlds of a campaign share: node ids, URLs, and who prefers which key.
package struct SimulatedSite: Sendable {
    let nodes: [NodeID]
    let keys: [SimulatedKey]
    /// By key the indices of ``nodes``, the owner first.
    ///
    /// Who is away is left out: that is the ring without it, as long as one of the list is there.
    let preference: [[Int]]

    package init(nodes count: Int) {
        var dice = SplitMix64(seed: UInt64(count))
        let nodes = (0..<count).map { _ in NodeID(using: &dice) }
        let keys = (0..<6).map { Self.key($0, using: &dice) }
        let ring = Ring(members: nodes.map { RingMember($0) })
        self.nodes = nodes
        self.keys = keys
        preference = keys.map { key in
            ring.owners(of: key.name.digest).compactMap { nodes.firstIndex(of: $0) }
        }
    }

    private static func key(_ number: Int, using dice: inout SplitMix64) -> SimulatedKey {
        let host = Array("h\(number % 2).example".utf8)
        let path = Array((number < 3 ? "/a" : "/b").utf8)
        let url = Array("http://".utf8) + host + path + Array("/\(number)".utf8)
        var bytes: [UInt8] = []
        for _ in 0..<4 { bytes.appendLittle(dice.next()) }
        return SimulatedKey(
            url: url, host: host, path: path, name: EntryName(bytes.span),
            tags: [Array("t\(number % 3)".utf8)],
            maxAge: number == 5 ? .milliseconds(700) : .seconds(3_600),
            staleWhileRevalidate: number.isMultiple(of: 2) ? .seconds(3_600) : .zero,
            isStaleIfError: number.isMultiple(of: 3))
    }
}
