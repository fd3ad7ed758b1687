import Ground

/// Whose part of the disk a record counts to: a number that follows from its key, and so is the
/// same after a restart and a change of settings.
package enum DiskShareID {
    /// That of images.
    package static let images: UInt16 = 0

    /// The number for a key: 0 if it is not a site's, which is `//`, a host, and a path.
    package static func number(ofKey key: Span<UInt8>) -> UInt16 {
        guard key.matches("//", at: 0..<min(2, key.count)) else { return images }
        var end = 2
        while end < key.count, key[end] != UInt8(ascii: "/") { end += 1 }
        return number(ofHost: key.extracting(2..<end))
    }

    /// The number for a host as it stands in keys; never 0.
    ///
    /// Of two hosts one in 65,535 pairs has one number; they then count as one.
    package static func number(ofHost host: Span<UInt8>) -> UInt16 {
        UInt16(XXH64.hash(host, seed: 0) % 65_535) + 1
    }
}

/// What sites may take of the disk.
package struct DiskShareLimits: Hashable, Sendable {
    /// Entries that have one limit.
    package enum Group: Hashable, Sendable {
        case host(UInt16)
        /// All hosts that have no site of their own.
        case others
    }

    /// Percent of the log for each named host, nil for no limit; in no order.
    private var named: [UInt16: Int?] = [:]
    private var others: Int?

    /// No limits.
    package init() {}

    package var isEmpty: Bool {
        others == nil && named.values.allSatisfy { $0 == nil }
    }

    /// Says what the site of this host, as it stands in keys, may take: percent, nil for all.
    package mutating func setHostLimit(_ host: [UInt8], percent: Int?) {
        named.updateValue(percent, forKey: DiskShareID.number(ofHost: host.span))
    }

    /// Says what images may take.
    package mutating func setImageLimit(percent: Int?) {
        named.updateValue(percent, forKey: DiskShareID.images)
    }

    /// Says what the site of all other hosts may take.
    package mutating func setDefaultLimit(percent: Int?) {
        others = percent
    }

    /// The group that a record of this number belongs to and the percent that the group may take;
    /// nil if there is no limit.
    package func limit(of number: UInt16) -> (group: Group, percent: Int)? {
        if let percent = named[number] { return percent.map { (.host(number), $0) } }
        return number == DiskShareID.images ? nil : others.map { (.others, $0) }
    }

    /// True if a record of this number belongs to the group.
    package func contains(_ number: UInt16, in group: Group) -> Bool {
        switch group {
        case .host(let host): number == host
        case .others: number != DiskShareID.images && named[number] == nil
        }
    }
}
