/// Puts a list of fields in as many frames as it takes, in order; each frame begins the same.
struct FrameSplitter {
    private let kind: PeerFrameKind
    private let prefix: StructureWriter
    private var writer: StructureWriter
    private var frames: [[UInt8]] = []
    private var isFrameEmpty = true

    /// `beginning` is a payload up to the first field that is put.
    init(_ kind: PeerFrameKind, _ beginning: StructureWriter) {
        self.kind = kind
        self.prefix = beginning
        writer = beginning
    }

    /// Frames that say nothing but their fields.
    init(_ kind: PeerFrameKind) {
        var beginning = StructureWriter.payload
        beginning.endFixedPart()
        self.init(kind, beginning)
    }

    /// Puts a field for each.
    mutating func putFields<Value: FixedSizeValue>(
        _ tag: UInt16, _ values: [Value]
    ) throws(SendError) {
        for value in values {
            try ensureCapacity(Value.bytesCount)
            writer.putField(tag, value: value)
        }
    }

    mutating func putField(_ tag: UInt16, _ value: [UInt8]) throws(SendError) {
        try ensureCapacity(value.count)
        writer.putField(tag, value)
    }

    /// Ends the frame if the next `bytesCount` do not fit in it as one field.
    private mutating func ensureCapacity(_ bytesCount: Int) throws(SendError) {
        if !isFrameEmpty,
            writer.payloadBytes + StructureReader.fieldHeaderBytes + bytesCount
                > kind.payloadBytesMax
        {
            try endFrame()
        }
        isFrameEmpty = false
    }

    /// What follows goes in another frame, unless nothing was put in this one.
    mutating func endFrame() throws(SendError) {
        guard !isFrameEmpty else { return }
        frames.append(try writer.frame(kind))
        writer = prefix
        isFrameEmpty = true
    }

    /// Bytes that fit in this frame yet, the heads of fields included.
    var remainingBytes: Int { kind.payloadBytesMax - writer.payloadBytes }

    /// All frames; one that is bare if nothing was put.
    consuming func finish() throws(SendError) -> [[UInt8]] {
        if !isFrameEmpty || frames.isEmpty { frames.append(try writer.frame(kind)) }
        return frames
    }
}
