/// What a frame from a peer means for the node.
package enum PeerEvent: Hashable, Sendable {
    /// Nothing: it was taken in, dropped, or skipped.
    case ignored
    /// The peer said HELLO: the connection may be used, in this version.
    case helloReceived(Hello, version: UInt16)
    /// The peer ends the connection: close it.
    case goodbyeReceived(Goodbye)
    case gossipReceived(Gossip)
    /// Take it in before anything that comes after it.
    case invalidationReceived(InvalidationMessage)
    case touchesReceived([AgedTouch])
    /// Answer with verdicts, after asking for what is wanted.
    case offersReceived([PeerOffer])
    case offerOutcomesReceived([OfferOutcome])
    /// Answer it on this stream.
    case queryReceived(stream: UInt32, PeerQuery)
    /// The asker wants no answer any more: stop what was begun for it; the stream is closed.
    case queryCancelled(stream: UInt32)
    /// To a question of this side; after a final one the stream is closed.
    case replyReceived(stream: UInt32, PeerReply)
    /// The body is whole; the stream is closed.
    case bodyEnded(stream: UInt32, StreamEnd)
    /// The body ends here and is not whole; the stream is closed.
    case streamReset(stream: UInt32, StreamReset.Code)
    /// The connection is gone and this question has no whole answer; so many bytes of a body came,
    /// nil if not even its head.
    case connectionLost(stream: UInt32, receivedBytes: UInt64?)
}

/// What is to be done with the payload of a DATA frame.
package enum DataDisposition: Hashable, Sendable {
    /// Hand it on, and say ``PeerLink/taken(_:on:)`` when it is.
    case deliver(stream: UInt32, bytesCount: Int)
    /// Drop it: nobody wants it any more.
    case discard(bytesCount: Int)
}

/// What is to be sent next.
package enum PeerOutput: Hashable, Sendable {
    /// Nothing.
    case idle
    /// These bytes, a whole frame.
    case control([UInt8])
    /// This head, then as many bytes as it says of the body of its stream.
    case data(PeerFrameHeader)
    /// Nothing ever: close when everything is written.
    case close
}
