import Ground

/// The number of the share of the disk that a record counts towards.
///
/// It follows from the record's key, so it is the same after a restart and a change of settings.
package enum DiskShareID {
    /// The share of images.
    package static let images: UInt16 = 0

    /// Returns the share of a key: that of a site for `//`, a host and a path, otherwise
    /// ``images``.
    package static func number(ofKey key: Span<UInt8>) -> UInt16 {
        guard key.matches("//", at: 0..<min(2, key.count)) else { return images }
        var end = 2
        while end < key.count, key[end] != UInt8(ascii: "/") { end += 1 }
        return number(ofHost: key.extracting(2..<end))
    }

    /// Returns the share of a host as spelt in keys; never 0.
    ///
    /// One in 65,535 pairs of hosts has the same number; the two then share a limit.
    package static func number(ofHost host: Span<UInt8>) -> UInt16 {
        UInt16(XXH64.hash(host, seed: 0) % 65_535) + 1
    }
}

/// The limits of sites on their part of the disk log.
package struct DiskShareLimits: Hashable, Sendable {
    /// A set of entries with a common limit.
    package enum Group: Hashable, Sendable {
        /// The entries of the host with this share number.
        case host(UInt16)
        /// The entries of all hosts without a site of their own.
        case others
    }

    /// The limits of images and of named hosts in percent of the log, by share number; `nil` for
    /// none.
    private var named: [UInt16: Int?] = [:]
    /// The common limit of all other hosts.
    private var others: Int?

    /// Creates a set without limits.
    package init() {}

    /// True if no limit is set.
    package var isEmpty: Bool {
        others == nil && named.values.allSatisfy { $0 == nil }
    }

    /// Sets the limit of a host, spelt as in keys, in percent of the log.
    ///
    /// `nil` means no limit: the default limit does not apply to this host either.
    package mutating func setHostLimit(_ host: [UInt8], percent: Int?) {
        named.updateValue(percent, forKey: DiskShareID.number(ofHost: host.span))
    }

    /// Sets the limit of images in percent of the log; `nil` for no limit.
    package mutating func setImageLimit(percent: Int?) {
        named.updateValue(percent, forKey: DiskShareID.images)
    }

    /// Sets the common limit, in percent of the log, of all hosts without a limit set by
    /// ``setHostLimit(_:percent:)``; `nil` for no limit.
    package mutating func setDefaultLimit(percent: Int?) {
        others = percent
    }

    /// Returns the group of a share number and the group's limit in percent of the log; `nil` if
    /// the entries of this number are not limited.
    package func limit(of number: UInt16) -> (group: Group, percent: Int)? {
        if let percent = named[number] { return percent.map { (.host(number), $0) } }
        return number == DiskShareID.images ? nil : others.map { (.others, $0) }
    }

    /// True if records with this share number belong to the group.
    package func contains(_ number: UInt16, in group: Group) -> Bool {
        switch group {
        case .host(let host): number == host
        case .others: number != DiskShareID.images && named[number] == nil
        }
    }
}
