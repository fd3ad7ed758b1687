import Cluster
import Ground
import Serving

/// The state shared by all simulations of a campaign: node ids, objects and the ring's preferences.
struct SimulatedSite: Sendable {
    let nodes: [NodeID]
    let keys: [SimulatedKey]
    /// The indices of ``nodes`` in order of preference by key, the owner first.
    ///
    /// Without the nodes that are down, the list equals that of the ring without them, as long as
    /// one remains.
    let preference: [[Int]]

    /// Creates a site for up to `count` nodes.
    init(nodes count: Int) {
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

    /// Returns an object whose site, path, tag and freshness follow from its number.
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

/// An object at the origin.
struct SimulatedKey: Sendable {
    var url: [UInt8]
    var host: [UInt8]
    var path: [UInt8]
    var name: EntryName
    var tags: [[UInt8]]
    var maxAge: Interval
    var staleWhileRevalidate: Interval
    /// True if the object may be served stale when the origin fails, at any age.
    var isStaleIfError: Bool

    /// The name under which the object is purged.
    var urlName: [UInt8] { Array(URLName.name(ofKey: url)) }
}
