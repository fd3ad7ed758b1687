import Cluster
import Ground
import NIOCore
import Serving
import Synchronization
import Telemetry
import Wire

/// What other loops want of a connection.
extension PeerConnection {
    /// Sends gossip behind what was sent before.
    func send(_ gossip: Gossip) {
        onLoop { connection in
            // Who reads so slowly that it is refused is found silent by its pings.
            try? connection.link.send(gossip)
            connection.flush()
        }
    }

    /// Says something about invalidations behind what was said before; this node's own records up
    /// to `pushed` are in it.
    ///
    /// On the loop too it waits for its turn, so that nothing that is said there overtakes what was
    /// said elsewhere; a question that does carries what was not sent yet.
    func send(_ said: EncodedInvalidationMessage, pushed: UInt64) {
        loop?.execute { [self] in
            do throws(SendError) {
                try link.send(said)
                pushedRecordNumber = max(pushedRecordNumber, pushed)
            } catch {
                // On the next connection all is told anew.
            }
            scheduleFlush()
        }
    }

    /// Sends touches behind what was sent before.
    func send(_ touches: [AgedTouch]) {
        onLoop { connection in
            do throws(SendError) {
                try connection.link.send(touches: touches)
                connection.hub.counters.add(.touchesSent, touches.count)
            } catch {
                connection.hub.counters.add(.touchesLost, touches.count)
            }
            connection.flush()
        }
    }

    /// Offers entries behind what was sent before; `refused` is told if there is no room for that
    /// now, or no connection.
    func send(_ offers: [PeerOffer], onRefusal: @escaping @Sendable () -> Void) {
        guard loop != nil else { return onRefusal() }
        onLoop { connection in
            do throws(SendError) {
                try connection.link.send(offers: offers)
                connection.hub.counters.add(.offersSent, offers.count)
            } catch {
                onRefusal()
            }
            connection.flush()
        }
    }

    /// Answers offers behind what was sent before.
    func send(_ verdicts: [OfferOutcome]) {
        onLoop { connection in
            // Who does not hear of it makes the offer again.
            for start in stride(from: 0, to: verdicts.count, by: PeerProtocol.offersMax) {
                let end = min(start + PeerProtocol.offersMax, verdicts.count)
                try? connection.link.send(verdicts: Array(verdicts[start..<end]))
            }
            connection.flush()
        }
    }

    /// Ends the connection with a reason.
    func close(_ goodbye: Goodbye) {
        onLoop { connection in
            connection.link.close(goodbye)
            connection.flush()
        }
    }

    /// Puts a question; its answer is told to it.
    func send(_ ask: PeerRequest) {
        onLoop { connection in
            guard let purges = connection.loopContext?.purges else { return ask.deliver(.failed) }
            do throws(SendError) {
                guard let stream = try connection.sendQuery(ask.query, to: ask.node, purges) else {
                    return ask.deliver(.failed)
                }
                ask.stream = stream
                ask.sentAt = SystemClock.now()
                connection.requests[stream] = ask
                if connection.link.isNearlyExhausted {
                    connection.hub.connectionNearlyExhausted(connection.id)
                }
            } catch {
                if error == .streamIDsExhausted {
                    // None has taken its place; without it one is dialled as after a break.
                    let text = "it has no numbers left"
                    connection.link.close(Goodbye(.superseded, text))
                    connection.scheduleFlush()
                }
                return ask.deliver(error == .notOpen ? .failed : .notSent)
            }
            connection.scheduleFlush()
        }
    }

    /// Sends a question with what the peer has to know first; nil if nothing may be asked here,
    /// because this node speaks with it on another connection by now.
    ///
    /// - Throws: `SendError`; the peer has not heard of the question, and is told the rest again.
    private func sendQuery(
        _ question: PeerQuery, to peer: NodeID, _ purges: PurgeCoordinator
    ) throws(SendError) -> UInt32? {
        let count = purges.appliedCount
        if count == sentInvalidationCount { return try link.sendQuery(question) }
        guard
            let untold = purges.unsentInvalidations(to: peer, pushed: pushedRecordNumber, on: self)
        else { return nil }
        var question = question
        if let ahead = untold.precedingMessage {
            try link.send(ahead)
        } else {
            question.positions = untold.positions
        }
        question.invalidations = untold.records.map(\.bytes)
        let stream = try link.sendQuery(question)
        purges.invalidationsSent(untold, to: peer)
        sentInvalidationCount = count
        return stream
    }

    /// Nothing more of the answer is wanted.
    func cancel(_ ask: PeerRequest) {
        onLoop { connection in
            guard let stream = ask.stream else { return }
            connection.markUnresponsive(after: ask)
            ask.stream = nil
            ask.receivedEntry = nil
            connection.requests[stream] = nil
            connection.link.cancel(stream)
            connection.scheduleFlush()
        }
    }

    /// Whoever gives `ask` up has perhaps waited for nothing.
    private func markUnresponsive(after ask: PeerRequest) {
        let hasWaited = SystemClock.now() - ask.sentAt >= OwnerSearch.probeDelay
        guard hasWaited, lastReadAt < ask.sentAt else { return }
        isUnresponsive.store(true, ordering: .relaxed)
    }

    /// So many bytes of the answer are out of the way.
    func bytesConsumed(_ bytesCount: Int, of ask: PeerRequest) {
        onLoop { connection in
            guard let stream = ask.stream else { return }
            connection.link.bytesConsumed(bytesCount, on: stream)
            connection.scheduleFlush()
        }
    }

    /// The peer is suspected: nobody waits for it any more who has nothing of it.
    func peerSuspected() {
        onLoop { connection in
            for stream in connection.requests.keys.sorted() {
                guard let ask = connection.requests[stream], !ask.hasEntryHead else { continue }
                connection.complete(ask, .failed)
                connection.link.cancel(stream)
            }
            connection.flush()
        }
    }

    /// Nothing more is said on a stream of the peer's.
    func replyFinished(_ stream: UInt32) {
        handlers[stream] = nil
    }
}
