package import Ground

/// The metadata that precedes the body in a record; see "Record" in <doc:DiskFormat>.
package struct DiskRecord: Hashable, Sendable {
    /// The name of the entry.
    package var name: EntryName
    /// The node's invalidation version when the request for the entry began.
    package var invalidationVersion: InvalidationVersion
    /// The wall times of the response.
    package var times: DiskTimes
    /// The last access, in seconds since 1970.
    package var lastAccess: UInt32
    /// The number of accesses.
    package var accessCount: UInt16
    /// The flags of the response.
    package var flags: EntryFlags
    /// Seconds of staleness allowed while revalidating, as in `EntryMetadata`; 0 in records of
    /// versions without sites.
    package var staleWhileRevalidateSeconds: UInt32
    /// Seconds of staleness allowed if the origin fails, as in `EntryMetadata`; 0 in older records.
    package var staleIfErrorSeconds: UInt32
    /// The extents of the parts of ``head``.
    package var layout: DiskHeadLayout
    /// The normalised URL.
    package var key: [UInt8]
    /// The field lines as they are sent.
    package var head: [UInt8]
    /// The tags of the response, including those that hold URL names.
    package var tags: [[UInt8]]
    /// The size of the body in bytes.
    package var bodyBytes: UInt64
    /// The checksums of the body's chunks; see ``DiskFormat/chunkSeed(salt:offset:number:)``.
    package var chunkSums: [UInt64]

    /// Creates a record from its parts; `chunkSums` must have ``chunkCount(_:)`` elements.
    package init(
        name: EntryName, invalidationVersion: InvalidationVersion, times: DiskTimes,
        lastAccess: UInt32,
        accessCount: UInt16, flags: EntryFlags, staleWhileRevalidateSeconds: UInt32 = 0,
        staleIfErrorSeconds: UInt32 = 0, layout: DiskHeadLayout, key: [UInt8], head: [UInt8],
        tags: [[UInt8]], bodyBytes: UInt64, chunkSums: [UInt64]
    ) {
        self.name = name
        self.invalidationVersion = invalidationVersion
        self.times = times
        self.lastAccess = lastAccess
        self.accessCount = accessCount
        self.flags = flags
        self.staleWhileRevalidateSeconds = staleWhileRevalidateSeconds
        self.staleIfErrorSeconds = staleIfErrorSeconds
        self.layout = layout
        self.key = key
        self.head = head
        self.tags = tags
        self.bodyBytes = bodyBytes
        self.chunkSums = chunkSums
    }

    /// Returns the number of chunks of a body of `bytes`.
    package static func chunkCount(_ bytes: UInt64) -> Int {
        Int((bytes + UInt64(DiskFormat.chunkBytes) - 1) / UInt64(DiskFormat.chunkBytes))
    }
}

/// The wall times of a record, in milliseconds since 1970.
package struct DiskTimes: Hashable, Sendable {
    /// The start of the request that the origin last answered with this response or its validation.
    package var validated: Int64
    /// The time at which the age was zero (RFC 9111 §4.2.3).
    package var generated: Int64
    /// The time at which freshness ends.
    package var freshUntil: Int64
    /// The value of Last-Modified; ``DiskFormat/noTime`` if there is none.
    package var lastModified: Int64
    /// The value of Date.
    package var date: Int64

    /// Creates times from their parts, in milliseconds since 1970.
    package init(
        validated: Int64, generated: Int64, freshUntil: Int64, lastModified: Int64, date: Int64
    ) {
        self.validated = validated
        self.generated = generated
        self.freshUntil = freshUntil
        self.lastModified = lastModified
        self.date = date
    }
}

/// The positions of the parts of a rendered head, in bytes from its beginning.
package struct DiskHeadLayout: Hashable, Sendable {
    /// The start of the lines for a 206 with one range.
    package var partialStart: UInt32
    /// The start of the lines for a 206 with several ranges.
    package var multipartStart: UInt32
    /// The start of the lines for a 304.
    package var notModifiedStart: UInt32
    /// The value of Content-Type.
    package var contentType: Extent
    /// The value of ETag, with its quotes and `W/`.
    package var entityTag: Extent

    /// Creates a layout from its parts.
    package init(
        partialStart: UInt32, multipartStart: UInt32, notModifiedStart: UInt32,
        contentType: Extent, entityTag: Extent
    ) {
        self.partialStart = partialStart
        self.multipartStart = multipartStart
        self.notModifiedStart = notModifiedStart
        self.contentType = contentType
        self.entityTag = entityTag
    }
}

/// The lengths of a record's parts, known from its fixed part alone.
package struct DiskRecordExtent: Hashable, Sendable {
    /// The length of the metadata before the body in bytes.
    package var metaBytes: Int
    /// The size of the body in bytes.
    package var bodyBytes: UInt64

    /// The length of the whole record in bytes, including padding to a unit.
    package var recordBytes: Int { DiskFormat.rounded(metaBytes + Int(bodyBytes)) }
}

extension DiskRecord {
    /// The length of the fixed part that this program writes, in bytes.
    package static let fixedBytes = 192

    private static let magic: UInt32 = 0x4345_524E

    /// The lengths of the record's parts.
    package var extent: DiskRecordExtent {
        let tagBytes = tags.reduce(0) { $0 + 2 + $1.count }
        return DiskRecordExtent(
            metaBytes: Self.fixedBytes + key.count + head.count + tagBytes + 8 * chunkSums.count,
            bodyBytes: bodyBytes)
    }

    /// Returns the encoded metadata for a record at `offset` of a segment with `salt`.
    package func metaBytes(salt: UInt64, offset: UInt64) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(extent.metaBytes)
        bytes.appendLittle(Self.magic)
        bytes.appendLittle(UInt16(Self.fixedBytes))
        bytes.appendLittle(UInt16(0))
        bytes.appendLittle(UInt64(0))
        bytes.appendLittle(UInt32(key.count))
        bytes.appendLittle(UInt32(head.count))
        bytes.appendLittle(UInt32(tags.reduce(0) { $0 + 2 + $1.count }))
        bytes.appendLittle(UInt32(chunkSums.count))
        bytes.appendLittle(bodyBytes)
        name.append(to: &bytes)
        bytes.append(invalidationVersion)
        for time in [
            times.validated, times.generated, times.freshUntil, times.lastModified, times.date,
        ] {
            bytes.appendLittle(UInt64(bitPattern: time))
        }
        bytes.appendLittle(lastAccess)
        bytes.appendLittle(accessCount)
        bytes += [
            UInt8(truncatingIfNeeded: flags.rawValue), 0, 0, UInt8(flags.rawValue >> 8),
        ]
        bytes.pad(to: 140)
        bytes.appendLittle(staleWhileRevalidateSeconds)
        for number in [
            layout.partialStart, layout.multipartStart, layout.notModifiedStart,
            layout.contentType.start, layout.contentType.count, layout.entityTag.start,
            layout.entityTag.count,
        ] {
            bytes.appendLittle(number)
        }
        bytes.appendLittle(staleIfErrorSeconds)
        bytes.pad(to: Self.fixedBytes)
        bytes += key
        bytes += head
        for tag in tags {
            bytes.appendLittle(UInt16(tag.count))
            bytes += tag
        }
        for sum in chunkSums { bytes.appendLittle(sum) }
        bytes.writeChecksum(
            at: 8, from: 16, seed: DiskFormat.recordSeed(salt: salt, offset: offset))
        return bytes
    }

    /// Reads the lengths from a fixed part, without verifying its checksum.
    ///
    /// - Returns: `nil` if no record begins with these bytes, its lengths contradict each other, or
    ///   it does not fit in `space` bytes.
    package static func extent(_ fixed: Span<UInt8>, space: Int) -> DiskRecordExtent? {
        guard fixed.count >= fixedBytes, fixed.little32(at: 0) == magic else { return nil }
        let fixedSize = UInt64(fixed.little16(at: 4))
        let bodyBytes = fixed.little64(at: 32)
        let variable = [16, 20, 24].reduce(UInt64(0)) { $0 + UInt64(fixed.little32(at: $1)) }
        let metaBytes = fixedSize + variable + 8 * UInt64(fixed.little32(at: 28))
        guard fixedSize >= UInt64(fixedBytes), bodyBytes <= UInt64(space),
            metaBytes <= UInt64(space),
            DiskFormat.rounded(Int(metaBytes + bodyBytes)) <= space,
            Int(fixed.little32(at: 28)) == chunkCount(bodyBytes)
        else { return nil }
        return DiskRecordExtent(metaBytes: Int(metaBytes), bodyBytes: bodyBytes)
    }

    /// Decodes the metadata of a record.
    ///
    /// - Parameters:
    ///   - bytes: everything before the body.
    ///   - salt: the salt of the segment.
    ///   - offset: the position of the record in the segment.
    /// - Throws: the reason if the metadata is invalid.
    package init(
        meta bytes: Span<UInt8>, salt: UInt64, offset: UInt64
    ) throws(DiskFormatError) {
        guard bytes.count >= Self.fixedBytes else { throw .truncated }
        guard bytes.little32(at: 0) == Self.magic else { throw .badMagic }
        let seed = DiskFormat.recordSeed(salt: salt, offset: offset)
        guard bytes.little64(at: 8) == bytes.checksum(16..<bytes.count, seed: seed) else {
            throw .checksumMismatch
        }
        guard let extent = Self.extent(bytes, space: .max / 2), extent.metaBytes == bytes.count
        else { throw .truncated }
        let keyStart = Int(bytes.little16(at: 4))
        let headStart = keyStart + Int(bytes.little32(at: 16))
        let tagsStart = headStart + Int(bytes.little32(at: 20))
        let sumsStart = tagsStart + Int(bytes.little32(at: 24))
        let time = { (offset: Int, bytes: Span<UInt8>) in
            Int64(bitPattern: bytes.little64(at: offset))
        }
        self.init(
            name: EntryName(bytes, at: 40), invalidationVersion: bytes.invalidationVersion(at: 72),
            times: DiskTimes(
                validated: time(88, bytes), generated: time(96, bytes),
                freshUntil: time(104, bytes),
                lastModified: time(112, bytes), date: time(120, bytes)),
            lastAccess: bytes.little32(at: 128), accessCount: bytes.little16(at: 132),
            flags: EntryFlags(rawValue: UInt16(bytes[134]) | UInt16(bytes[137]) << 8),
            staleWhileRevalidateSeconds: bytes.little32(at: 140),
            staleIfErrorSeconds: bytes.little32(at: 172),
            layout: try DiskHeadLayout(bytes, headBytes: tagsStart - headStart),
            key: bytes.copy(keyStart..<headStart), head: bytes.copy(headStart..<tagsStart),
            tags: try Self.tags(bytes, at: tagsStart..<sumsStart),
            bodyBytes: extent.bodyBytes,
            chunkSums: stride(from: sumsStart, to: bytes.count, by: 8).map {
                bytes.little64(at: $0)
            })
    }

    /// Decodes tags that are each preceded by their length in two bytes.
    private static func tags(
        _ bytes: Span<UInt8>, at range: Range<Int>
    ) throws(DiskFormatError) -> [[UInt8]] {
        var tags: [[UInt8]] = []
        var position = range.lowerBound
        while position < range.upperBound {
            guard position + 2 <= range.upperBound else { throw .truncated }
            let end = position + 2 + Int(bytes.little16(at: position))
            guard end <= range.upperBound else { throw .truncated }
            tags.append(bytes.copy(position + 2..<end))
            position = end
        }
        return tags
    }
}

extension DiskHeadLayout {
    /// Decodes the layout from a record's metadata; throws if a part exceeds the head.
    fileprivate init(_ bytes: Span<UInt8>, headBytes: Int) throws(DiskFormatError) {
        self.init(
            partialStart: bytes.little32(at: 144), multipartStart: bytes.little32(at: 148),
            notModifiedStart: bytes.little32(at: 152), contentType: bytes.extent(at: 156),
            entityTag: bytes.extent(at: 164))
        let starts = [partialStart, multipartStart, notModifiedStart]
        guard starts.allSatisfy({ Int($0) <= headBytes }),
            contentType.range.upperBound <= headBytes, entityTag.range.upperBound <= headBytes
        else { throw .truncated }
    }
}

/// A conversion between instants of the boot clock and wall times that outlive the process.
///
/// The two clocks are read together once, at the start of the process, so that setting the wall
/// clock back while it runs makes no response fresh again.
package struct DiskClock: Hashable, Sendable {
    private let instant: Instant
    /// The wall time at ``instant``, in milliseconds since 1970.
    private let wall: Int64

    /// Creates a conversion with which `instant` corresponds to `wall` milliseconds since 1970.
    package init(instant: Instant, wall: Int64) {
        self.instant = instant
        self.wall = wall
    }

    /// Returns the wall time of `instant` in milliseconds since 1970; the greatest number for
    /// ``Ground/Instant/distantFuture``.
    package func wall(_ instant: Instant) -> Int64 {
        guard instant != .distantFuture else { return .max }
        let (sum, isOver) = wall.addingReportingOverflow((instant - self.instant).milliseconds)
        return isOver ? .max : sum
    }

    /// Returns the instant that corresponds to `wall` milliseconds since 1970;
    /// ``Ground/Instant/distantFuture`` for the greatest number.
    package func instant(_ wall: Int64) -> Instant {
        guard wall != .max else { return .distantFuture }
        let (difference, isOver) = wall.subtractingReportingOverflow(self.wall)
        return instant + .milliseconds(isOver ? (wall < 0 ? .min : .max) : difference)
    }

    /// Returns the wall time of `instant` in seconds since 1970, the unit of access times; clamped
    /// to 32 bits.
    package func second(_ instant: Instant) -> UInt32 {
        UInt32(clamping: wall(instant) / 1000)
    }
}
