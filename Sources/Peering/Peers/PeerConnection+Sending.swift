import Cluster
import Ground
import NIOCore
import Platform
import Serving
import Synchronization
import Telemetry
import Wire

/// Thread-safe output of a connection.
extension PeerConnection {
    /// Sends gossip, ahead of other frames that wait; drops it if the link refuses it.
    func send(_ gossip: Gossip) {
        onLoop { connection in
            // The pings detect a peer that reads so slowly that the link refuses gossip.
            try? connection.link.send(gossip)
            connection.flush()
        }
    }

    /// Sends a message about invalidations, after everything sent before; drops it if the
    /// connection is not open.
    ///
    /// On the loop too it waits for its turn, so that no message sent there overtakes one from
    /// another thread. A query that does overtake it carries what was not sent yet.
    ///
    /// - Parameters:
    ///   - said: the encoded message.
    ///   - pushed: the number of the last of this node's own records in it; 0 for none.
    func send(_ said: EncodedInvalidationMessage, pushed: UInt64) {
        loop?.execute { [self] in
            do throws(SendError) {
                try link.send(said)
                pushedRecordNumber = max(pushedRecordNumber, pushed)
            } catch {
                // On the next connection everything is sent again.
            }
            scheduleFlush()
        }
    }

    /// Sends touches after everything sent before; touches that do not fit are dropped.
    func send(_ touches: [AgedTouch]) {
        onLoop { connection in
            do throws(SendError) {
                try connection.link.send(touches)
                connection.hub.counters.add(.touchesSent, touches.count)
            } catch {
                connection.hub.counters.add(.touchesLost, touches.count)
            }
            connection.flush()
        }
    }

    /// Sends offers after everything sent before; calls `onRefusal`, on any thread, if they do not
    /// fit or the connection is not open.
    func send(_ offers: [PeerOffer], onRefusal: @escaping @Sendable () -> Void) {
        guard loop != nil else { return onRefusal() }
        onLoop { connection in
            do throws(SendError) {
                try connection.link.send(offers)
                connection.hub.counters.add(.offersSent, offers.count)
            } catch {
                onRefusal()
            }
            connection.flush()
        }
    }

    /// Sends the outcomes of offers after everything sent before; drops those that do not fit.
    func send(_ verdicts: [OfferOutcome]) {
        onLoop { connection in
            // A peer that does not receive them sends its offers again.
            for start in stride(from: 0, to: verdicts.count, by: PeerProtocol.offersMax) {
                let end = min(start + PeerProtocol.offersMax, verdicts.count)
                try? connection.link.send(Array(verdicts[start..<end]))
            }
            connection.flush()
        }
    }

    /// Sends this node's summary after everything sent before; drops it if it does not fit.
    func send(_ summary: MemberSummary) {
        onLoop { connection in
            // The next one says more.
            try? connection.link.send(summary)
            connection.flush()
        }
    }

    /// Closes the connection with a reason, after the frames that wait; does nothing if it is
    /// closing already.
    func close(_ goodbye: Goodbye) {
        onLoop { connection in
            connection.link.close(goodbye)
            connection.flush()
        }
    }

    /// Sends a query, with the invalidations that the peer must have first; its events are
    /// delivered to it.
    ///
    /// The query fails if the connection is not open or no longer the one in use with the peer. It
    /// is reported as not sent if the link has no capacity or no stream ids left.
    package func send(_ ask: PeerRequest) {
        onLoop { connection in
            guard let purges = connection.hub.host.purges else { return ask.deliver(.failed) }
            do throws(SendError) {
                guard let stream = try connection.sendQuery(ask.query, to: ask.node, purges) else {
                    return ask.deliver(.failed)
                }
                connection.requests.add(ask, on: stream)
                if connection.link.isNearlyExhausted {
                    connection.hub.connectionNearlyExhausted(connection.id)
                }
            } catch {
                if error == .streamIDsExhausted {
                    // Without a replacement yet, a new connection is dialled as after a failure.
                    let text = "its stream ids are exhausted"
                    connection.link.close(Goodbye(.redundant, text))
                    connection.scheduleFlush()
                }
                return ask.deliver(error == .notOpen ? .failed : .notSent)
            }
            connection.scheduleFlush()
        }
    }

    /// Sends a query with the invalidations that the peer must have first.
    ///
    /// - Returns: the stream; `nil` if this node uses another connection with the peer by now, so
    ///   that no query may be sent here.
    ///
    /// - Throws: `SendError`; the peer has not received the query, and the invalidations are sent
    ///   again.
    private func sendQuery(
        _ question: PeerQuery, to peer: NodeID, _ purges: PurgeCoordinator
    ) throws(SendError) -> UInt32? {
        let count = purges.appliedCount
        if count == sentInvalidationCount { return try link.sendQuery(question) }
        guard
            let unsent = purges.unsentInvalidations(to: peer, pushed: pushedRecordNumber, on: self)
        else { return nil }
        var question = question
        if let ahead = unsent.precedingMessage {
            try link.send(ahead)
        } else {
            question.positions = unsent.positions
        }
        question.invalidations = unsent.records.map(\.bytes)
        let stream = try link.sendQuery(question)
        purges.invalidationsSent(unsent, to: peer)
        sentInvalidationCount = count
        return stream
    }

    /// Cancels an open query, and marks the peer as unresponsive if it sent nothing while the query
    /// waited for long; does nothing if the query has ended.
    func cancel(_ ask: PeerRequest) {
        onLoop { connection in
            guard let stream = connection.requests.remove(ask) else { return }
            connection.markUnresponsive(after: ask)
            connection.link.cancel(stream)
            connection.scheduleFlush()
        }
    }

    /// Marks the peer as unresponsive if `ask` was sent at least ``OwnerSearch/probeDelay`` ago and
    /// no input has arrived since.
    private func markUnresponsive(after ask: PeerRequest) {
        let hasWaited = SystemClock.now() - ask.sentAt >= OwnerSearch.probeDelay
        guard hasWaited, lastReadAt < ask.sentAt else { return }
        isUnresponsive.store(true, ordering: .relaxed)
    }

    /// Acknowledges body bytes, which reopens the peer's flow-control window; does nothing if the
    /// query has ended.
    package func bytesConsumed(_ bytesCount: Int, of ask: PeerRequest) {
        onLoop { connection in
            guard let stream = ask.stream else { return }
            connection.link.bytesConsumed(bytesCount, on: stream)
            connection.scheduleFlush()
        }
    }

    /// Fails and cancels the queries to which no entry head has arrived, because the peer is
    /// suspected.
    func peerSuspected() {
        onLoop { connection in
            connection.requests.failWithoutHead { connection.link.cancel($0) }
            connection.flush()
        }
    }

    /// Removes the handler of a peer's query whose reply has ended; called on the loop.
    package func replyFinished(_ stream: UInt32) {
        handlers[stream] = nil
    }
}
