package import Ground

/// Everything that a record says before its body; see "Record" in <doc:DiskFormat>.
package struct DiskRecord: Hashable, Sendable {
    /// SHA-256 that names the entry.
    package var name: EntryName
    /// The node's stamp when the request for the entry began.
    package var invalidationVersion: InvalidationVersion
    package var times: DiskTimes
    /// Last access, in seconds since 1970, and how often there was one.
    package var lastAccess: UInt32
    package var accessCount: UInt16
    package var flags: EntryFlags
    /// See `EntryMetadata`; 0 in records of before sites.
    package var staleWhileRevalidateSeconds: UInt32
    package var staleIfErrorSeconds: UInt32
    package var layout: DiskHeadLayout
    /// The normalised URL.
    package var key: [UInt8]
    /// The field lines as they are sent.
    package var head: [UInt8]
    package var tags: [[UInt8]]
    /// Size of the body in bytes.
    package var bodyBytes: UInt64
    /// One for each chunk of the body; see ``DiskFormat/chunkSeed(salt:offset:number:)``.
    package var chunkSums: [UInt64]

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

    /// Number of chunks of a body of `bytes`.
    package static func chunkCount(_ bytes: UInt64) -> Int {
        Int((bytes + UInt64(DiskFormat.chunkBytes) - 1) / UInt64(DiskFormat.chunkBytes))
    }
}

/// The wall times of a record, in milliseconds since 1970.
package struct DiskTimes: Hashable, Sendable {
    /// When the request began that the origin last answered with it or with its validation.
    package var validated: Int64
    /// When its age was zero (RFC 9111 §4.2.3).
    package var generated: Int64
    /// When it is no longer fresh.
    package var freshUntil: Int64
    /// Last-Modified; ``DiskFormat/noTime`` if there is none.
    package var lastModified: Int64
    /// Date.
    package var date: Int64

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

/// Where the parts of a rendered head lie, in bytes from its beginning.
package struct DiskHeadLayout: Hashable, Sendable {
    package var partialStart: UInt32
    package var multipartStart: UInt32
    package var notModifiedStart: UInt32
    package var contentType: Extent
    package var entityTag: Extent

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
