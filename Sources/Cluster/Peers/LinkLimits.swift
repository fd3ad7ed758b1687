/// What one side of a connection takes.
package struct LinkLimits: Hashable, Sendable {
    /// Bytes of a body in a frame; never more than ``PeerProtocol/dataBytesMax`` are sent.
    package var dataBytesMax: UInt32
    /// Bytes of another payload; never more than ``PeerProtocol/payloadBytesMax`` are sent.
    package var payloadBytesMax: UInt32
    /// Questions that it answers at once.
    package var streamsMax: UInt32
    /// Bytes of a body that may come on each stream before it grants more.
    package var windowBytes: UInt32

    package init(
        dataBytesMax: UInt32, payloadBytesMax: UInt32, streamsMax: UInt32, windowBytes: UInt32
    ) {
        self.dataBytesMax = dataBytesMax
        self.payloadBytesMax = payloadBytesMax
        self.streamsMax = streamsMax
        self.windowBytes = windowBytes
    }

    /// Those of ``PeerProtocol``.
    package static let usual = LinkLimits(
        dataBytesMax: UInt32(PeerProtocol.dataBytesMax),
        payloadBytesMax: UInt32(PeerProtocol.payloadBytesMax),
        streamsMax: UInt32(PeerProtocol.streamsMax),
        windowBytes: UInt32(PeerProtocol.windowBytes))

    /// The least that every version takes.
    package static let least = LinkLimits(
        dataBytesMax: 1 << 10, payloadBytesMax: UInt32(PeerProtocol.payloadBytesMax),
        streamsMax: 1, windowBytes: 1 << 10)

    /// True if none is below ``least`` and the window is not above
    /// ``PeerProtocol/windowBytesMax``.
    package var areUsable: Bool {
        dataBytesMax >= Self.least.dataBytesMax && payloadBytesMax >= Self.least.payloadBytesMax
            && streamsMax >= Self.least.streamsMax && windowBytes >= Self.least.windowBytes
            && Int(windowBytes) <= PeerProtocol.windowBytesMax
    }
}
