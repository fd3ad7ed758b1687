/// Puts a list of fields in as many frames as it takes, in order; each frame begins the same.
struct FrameCutter {
    private let kind: PeerFrameKind
    private let beginning: StructureWriter
    private var writer: StructureWriter
    private var frames: [[UInt8]] = []
    private var isBare = true

    /// `beginning` is a payload up to the first field that is put.
    init(_ kind: PeerFrameKind, _ beginning: StructureWriter) {
        self.kind = kind
        self.beginning = beginning
        writer = beginning
    }

    /// Frames that say nothing but their fields.
    init(_ kind: PeerFrameKind) {
        var beginning = StructureWriter.payload
        beginning.endFixedPart()
        self.init(kind, beginning)
    }

    /// Puts a field for each.
    mutating func putFields<Value: FixedValue>(
        _ tag: UInt16, _ values: [Value]
    ) throws(SendRefusal) {
        for value in values {
            try makeRoom(Value.bytesCount)
            writer.putField(tag, fixed: value)
        }
    }

    mutating func putField(_ tag: UInt16, _ value: [UInt8]) throws(SendRefusal) {
        try makeRoom(value.count)
        writer.putField(tag, value)
    }

    /// Ends the frame if the next `bytesCount` do not fit in it as one field.
    private mutating func makeRoom(_ bytesCount: Int) throws(SendRefusal) {
        if !isBare,
            writer.payloadBytes + PeerStructure.fieldHeadBytes + bytesCount
                > kind.payloadBytesMax
        {
            try endFrame()
        }
        isBare = false
    }

    /// What follows goes in another frame, unless nothing was put in this one.
    mutating func endFrame() throws(SendRefusal) {
        guard !isBare else { return }
        frames.append(try writer.frame(kind))
        writer = beginning
        isBare = true
    }

    /// Bytes that fit in this frame yet, the heads of fields included.
    var room: Int { kind.payloadBytesMax - writer.payloadBytes }

    /// All frames; one that is bare if nothing was put.
    consuming func finish() throws(SendRefusal) -> [[UInt8]] {
        if !isBare || frames.isEmpty { frames.append(try writer.frame(kind)) }
        return frames
    }
}
