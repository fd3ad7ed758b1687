import Ground
import NIOCore
import NIOPosix
import Synchronization

/// A client that asks for one image after the other over one connection, and holds every body
/// against what the origin has.
///
/// A slow one asks for large images only, takes some 100 KB a second, and gives up after a while.
final class ChurnClient: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let world: ChurnWorld
    private let isSlow: Bool
    private var dice: Dice
    private var image: ChurnImage?
    private var askedAt: UInt64 = 0
    private var head = ByteBuffer()
    private var status = 0
    private var isHit = false
    private var isWrong = false
    /// Of the body: received so far, and in all.
    private var position = 0
    private var length: Int?

    private static let slowBytes = 100_000
    private static let patienceSeconds: Int64 = 20
    private static let slowPauseMilliseconds: Int64 = 100

    init(_ world: ChurnWorld, isSlow: Bool, seed: UInt64) {
        self.world = world
        self.isSlow = isSlow
        dice = Dice(seed: seed)
    }

    func channelActive(context: ChannelHandlerContext) {
        ask(context)
        guard isSlow else { return }
        readSlowly(context)
        let context = NIOLoopBound(context, eventLoop: context.eventLoop)
        context.value.eventLoop.scheduleTask(in: .seconds(Self.patienceSeconds)) { [world] in
            world.tally.withLock { $0.gaveUp() }
            context.value.close(promise: nil)
        }
    }

    private func readSlowly(_ context: ChannelHandlerContext) {
        context.read()
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        context.eventLoop.scheduleTask(in: .milliseconds(Self.slowPauseMilliseconds)) {
            let (client, context) = bound.value
            if context.channel.isActive { client.readSlowly(context) }
        }
    }

    private func ask(_ context: ChannelHandlerContext) {
        guard !world.isOver else { return context.close(promise: nil) }
        let image =
            isSlow
            ? world.catalog.large(500_000, using: &dice) : world.catalog.popular(using: &dice)
        self.image = image
        (status, position, length, isHit, isWrong) = (0, 0, nil, false, false)
        head.clear()
        askedAt = nanoseconds()
        var request = ByteBuffer()
        request.writeString("GET /v1/image?url=\(world.originPart)")
        request.writeString(image.path)
        request.writeString(" HTTP/1.1\r\nHost: node\r\n\r\n")
        context.writeAndFlush(wrapOutboundOut(request), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = unwrapInboundIn(data)
        if length == nil {
            head.writeBuffer(&bytes)
            guard readHead() else { return }
            bytes = head
        }
        guard let image else { return }
        guard let length else {
            world.tally.withLock { $0.foundWrong("\(image.path) has no length") }
            return context.close(promise: nil)
        }
        let part = bytes.readSlice(length: min(bytes.readableBytes, length - position))
        if let part, status == 200 { hold(part, against: image) }
        position += part?.readableBytes ?? 0
        guard position == length else { return }
        finish(context, image)
    }

    func channelInactive(context: ChannelHandlerContext) {
        if position > 0 || length != nil || head.readableBytes > 0, image != nil, !isSlow {
            world.tally.withLock { $0.connectionBroke() }
        }
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    /// Reads the head once it is whole, and leaves what comes after it.
    private func readHead() -> Bool {
        guard let end = head.readableBytesView.firstRange(of: "\r\n\r\n".utf8) else { return false }
        let count = end.upperBound - head.readerIndex
        let lines = (head.readString(length: count) ?? "").split(separator: "\r\n")
        status = lines.first.flatMap { Int($0.dropFirst(9).prefix(3)) } ?? 0
        for line in lines {
            let parts = line.split(separator: ": ", maxSplits: 1)
            switch parts[0].lowercased() {
            case "content-length" where parts.count == 2: length = Int(parts[1])
            case "cache-status" where parts.count == 2: isHit = parts[1].contains("; hit")
            default: continue
            }
        }
        return true
    }

    private func hold(_ part: ByteBuffer, against image: ChurnImage) {
        var part = part
        var offset = position
        while part.readableBytes > 0 {
            let expected = world.catalog.bytes(of: image, from: offset, count: part.readableBytes)
            guard expected.readableBytes > 0,
                part.readSlice(length: expected.readableBytes) == expected
            else {
                isWrong = true
                return
            }
            offset += expected.readableBytes
        }
    }

    private func finish(_ context: ChannelHandlerContext, _ image: ChurnImage) {
        isWrong = isWrong || status == 200 && position != image.bytes
        let taken = isSlow ? nil : nanoseconds() - askedAt
        let (status, position, isHit, isWrong) = (status, position, isHit, isWrong)
        world.tally.withLock { tally in
            tally.answered(status, bytes: position, isHit: isHit, nanoseconds: taken)
            if isWrong { tally.foundWrong("\(image.path) \(status)") }
        }
        self.image = nil
        ask(context)
    }
}
