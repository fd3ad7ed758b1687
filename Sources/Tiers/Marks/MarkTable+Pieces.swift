package import Ground

/// A table as bytes, to be kept; see "Marks" in <doc:DiskFormat>.
extension MarkTable {
    /// The marks with stamps that are wanted, in pieces that can be taken one by one in any order;
    /// at least one.
    package func encodedChunks(where isWanted: (InvalidationVersion) -> Bool = { _ in true })
        -> [[UInt8]]
    {
        var pieces = [head]
        for (hash, latest) in others where isWanted(latest.hard) || isWanted(latest.soft) {
            if pieces[pieces.count - 1].count >= Self.chunkBytesMax { pieces.append(head) }
            let place = pieces.count - 1
            pieces[place].appendLittle(hash)
            pieces[place].append(latest.hard)
            pieces[place].append(latest.soft)
        }
        return pieces
    }

    /// About the most bytes of a piece.
    private static let chunkBytesMax = 48 << 10
    /// Size of one mark in bytes.
    package static let markBytes = 40
    private static let headBytes = 16 + 2 * 16 + 4 * 16 + 2 * 8

    /// What every piece begins with: the key, what covers everything, and what look-ups go by.
    private var head: [UInt8] {
        var bytes: [UInt8] = []
        bytes.appendLittle(key.first)
        bytes.appendLittle(key.second)
        for version in [everything.hard, everything.soft] + newestVersions { bytes.append(version) }
        bytes.appendLittle(UInt64(prefixBytesMax))
        bytes.appendLittle(UInt64(hostBytesMax))
        return bytes
    }

    /// The table that `pieces` were made of; an empty one under `key` if there are none.
    ///
    /// Nil if they cannot have been made of one.
    package init?(encodedChunks: [[UInt8]], key: MarkHashKey) {
        let found = encodedChunks.first.flatMap { piece in
            piece.count < 16
                ? nil
                : MarkHashKey(first: piece.span.little64(at: 0), second: piece.span.little64(at: 8))
        }
        self.init(key: found ?? key)
        for piece in encodedChunks where !merge(piece.span) { return nil }
    }

    private mutating func merge(_ piece: Span<UInt8>) -> Bool {
        let marksBytes = piece.count - Self.headBytes
        guard marksBytes >= 0, marksBytes.isMultiple(of: Self.markBytes),
            piece.little64(at: 0) == key.first, piece.little64(at: 8) == key.second
        else { return false }
        everything.hard = max(everything.hard, piece.invalidationVersion(at: 16))
        everything.soft = max(everything.soft, piece.invalidationVersion(at: 32))
        for kind in newestVersions.indices {
            newestVersions[kind] = max(
                newestVersions[kind], piece.invalidationVersion(at: 48 + 16 * kind))
        }
        let lengths = 48 + 16 * newestVersions.count
        prefixBytesMax = max(prefixBytesMax, Int(clamping: piece.little64(at: lengths)))
        hostBytesMax = max(hostBytesMax, Int(clamping: piece.little64(at: lengths + 8)))
        for start in stride(from: Self.headBytes, to: piece.count, by: Self.markBytes) {
            let latest = LatestVersions(
                hard: piece.invalidationVersion(at: start + 8),
                soft: piece.invalidationVersion(at: start + 24))
            others[piece.little64(at: start), default: LatestVersions()].merge(latest)
        }
        return true
    }
}
