package import Ground

/// The secret of a node's directory by which its marks are hashed: whoever does not know it cannot
/// choose URLs or tags that a mark of others covers.
///
/// Drawn once and kept in the files of marks, for of what they cover nothing else is known.
package struct MarkKey: Hashable, Sendable {
    package let first: UInt64
    package let second: UInt64

    package init(first: UInt64, second: UInt64) {
        self.first = first
        self.second = second
    }

    /// One that everybody knows, where nobody chooses names to do harm: in simulations and
    /// measurements.
    package static let known = MarkKey(first: 0, second: 0)

    var hash: KeyedHash { KeyedHash(key0: first, key1: second) }
}

/// A mark as it is kept: what it covers is a hash by the directory's ``MarkKey``.
///
/// Two marks of one hash cover what either covers: an entry is then asked for again in vain, and
/// never served in error.
package struct StoredMark: Hashable, Sendable {
    /// What is covered; the number is that in the file.
    package enum Kind: UInt8, CaseIterable, Sendable {
        case entry = 1
        case url, prefix, host, tag, everything
    }

    package let kind: Kind
    /// True: entries stamped before are stale; false: they are dead.
    package let isSoft: Bool
    /// Bytes of a prefix or a host, of others 0.
    ///
    /// `UInt16.max` stands for that and more.
    package let length: UInt16
    /// Of *everything* 0.
    package let hash: UInt64
    package let stamp: Stamp

    init(kind: Kind, isSoft: Bool, length: UInt16, hash: UInt64, stamp: Stamp) {
        self.kind = kind
        self.isSoft = isSoft
        self.length = length
        self.hash = hash
        self.stamp = stamp
    }

    package init(_ mark: DiskMark, key: MarkKey) {
        switch mark.target {
        case .everything: self.init(kind: .everything, bytes: [], mark, key)
        case .entry(let name): self.init(kind: .entry, bytes: name.digest.bytes, mark, key)
        case .url(let url): self.init(kind: .url, bytes: url, mark, key)
        case .tag(let tag): self.init(kind: .tag, bytes: tag, mark, key)
        case .prefix(let prefix): self.init(kind: .prefix, bytes: prefix, mark, key)
        case .host(let host): self.init(kind: .host, bytes: host, mark, key)
        }
    }

    private init(kind: Kind, bytes: [UInt8], _ mark: DiskMark, _ key: MarkKey) {
        let hasLength = kind == .prefix || kind == .host
        self.init(
            kind: kind, isSoft: mark.isSoft, length: hasLength ? UInt16(clamping: bytes.count) : 0,
            hash: kind == .everything ? 0 : kind.hash(key.hash(bytes.span)), stamp: mark.stamp)
    }

    /// Entries stamped before are asked for again, whatever they are.
    package static func unknown(before stamp: Stamp) -> StoredMark {
        StoredMark(kind: .everything, isSoft: true, length: 0, hash: 0, stamp: stamp)
    }
}

extension StoredMark.Kind {
    /// That of a text as what this kind of mark covers, so that no two kinds have one.
    @inline(__always)
    func hash(_ text: UInt64) -> UInt64 { text &+ UInt64(rawValue) &* 0x9E37_79B9_7F4A_7C15 }
}

extension EntryDigest {
    /// Those of the digest, in their order.
    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.appendLittle(first)
        bytes.appendLittle(second)
        return bytes
    }
}

/// What a mark covers, and in which way.
private struct CoveredThing: Hashable {
    let hash: UInt64
    let isSoft: Bool
}

extension StoredMark {
    fileprivate var thing: CoveredThing { CoveredThing(hash: hash, isSoft: isSoft) }
}

extension [StoredMark] {
    /// Puts one mark, soft and for everything, in the place of all up to `stamp`; gives its stamp,
    /// which is that of the latest among them, nil if there are none.
    ///
    /// What is stamped later is held against what it was held against before.
    mutating func fold(upTo stamp: Stamp) -> Stamp? {
        var last: Stamp?
        removeAll { mark in
            guard mark.stamp <= stamp else { return false }
            last = Swift.max(last ?? mark.stamp, mark.stamp)
            return true
        }
        guard let last else { return nil }
        insert(.unknown(before: last), at: 0)
        return last
    }

    /// Keeps of the marks that cover one thing in one way the latest.
    mutating func unite() {
        var latest: [CoveredThing: Stamp] = [:]
        for mark in self {
            latest[mark.thing] = Swift.max(latest[mark.thing] ?? .zero, mark.stamp)
        }
        removeAll { mark in
            guard latest[mark.thing] == mark.stamp else { return true }
            latest[mark.thing] = nil
            return false
        }
    }
}
