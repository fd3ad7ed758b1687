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
    func say(_ gossip: Gossip) {
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
    func say(_ said: SaidMessage, pushed: UInt64) {
        loop?.execute { [self] in
            do throws(SendRefusal) {
                try link.send(said)
                pushedNumber = max(pushedNumber, pushed)
            } catch {
                // On the next connection all is told anew.
            }
            flushSoon()
        }
    }

    /// Sends touches behind what was sent before.
    func say(_ touches: [AgedTouch]) {
        onLoop { connection in
            do throws(SendRefusal) {
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
    func say(_ offers: [PeerOffer], refused: @escaping @Sendable () -> Void) {
        guard loop != nil else { return refused() }
        onLoop { connection in
            do throws(SendRefusal) {
                try connection.link.send(offers: offers)
                connection.hub.counters.add(.offersMade, offers.count)
            } catch {
                refused()
            }
            connection.flush()
        }
    }

    /// Answers offers behind what was sent before.
    func say(_ verdicts: [OfferVerdict]) {
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
    func end(_ goodbye: Goodbye) {
        onLoop { connection in
            connection.link.close(goodbye)
            connection.flush()
        }
    }

    /// Puts a question; its answer is told to it.
    func ask(_ ask: PeerAsk) {
        onLoop { connection in
            guard let desk = connection.hall?.desk else { return ask.tell(.lost) }
            do throws(SendRefusal) {
                guard let stream = try connection.put(ask.question, to: ask.node, desk) else {
                    return ask.tell(.lost)
                }
                ask.stream = stream
                ask.askedAt = SystemClock.now()
                connection.asks[stream] = ask
                if connection.link.isWearingOut { connection.hub.wearsOut(connection.id) }
            } catch {
                if error == .wornOut {
                    // None has taken its place; without it one is dialled as after a break.
                    let text = "it has no numbers left"
                    connection.link.close(Goodbye(.superseded, text))
                    connection.flushSoon()
                }
                return ask.tell(error == .notOpen ? .lost : .refused)
            }
            connection.flushSoon()
        }
    }

    /// Sends a question with what the peer has to know first; nil if nothing may be asked here,
    /// because this node speaks with it on another connection by now.
    ///
    /// - Throws: `SendRefusal`; the peer has not heard of the question, and is told the rest again.
    private func put(
        _ question: PeerQuestion, to peer: NodeID, _ desk: InvalidationDesk
    ) throws(SendRefusal) -> UInt32? {
        let count = desk.appliedCount
        if count == toldCount { return try link.ask(question) }
        guard let untold = desk.untold(to: peer, pushed: pushedNumber, on: self) else { return nil }
        var question = question
        if let ahead = untold.ahead {
            try link.send(ahead)
        } else {
            question.knowledge = untold.positions
        }
        question.invalidations = untold.records.map(\.bytes)
        let stream = try link.ask(question)
        desk.told(untold, to: peer)
        toldCount = count
        return stream
    }

    /// Nothing more of the answer is wanted.
    func cancel(_ ask: PeerAsk) {
        onLoop { connection in
            guard let stream = ask.stream else { return }
            connection.noteSilence(after: ask)
            ask.stream = nil
            ask.arriving = nil
            connection.asks[stream] = nil
            connection.link.cancel(stream)
            connection.flushSoon()
        }
    }

    /// Whoever gives `ask` up has perhaps waited for nothing.
    private func noteSilence(after ask: PeerAsk) {
        let hasWaited = SystemClock.now() - ask.askedAt >= OwnerSearch.silence
        guard hasWaited, heardAt < ask.askedAt else { return }
        isSilent.store(true, ordering: .relaxed)
    }

    /// So many bytes of the answer are out of the way.
    func take(_ bytesCount: Int, of ask: PeerAsk) {
        onLoop { connection in
            guard let stream = ask.stream else { return }
            connection.link.taken(bytesCount, on: stream)
            connection.flushSoon()
        }
    }

    /// The peer is suspected: nobody waits for it any more who has nothing of it.
    func suspect() {
        onLoop { connection in
            for stream in connection.asks.keys.sorted() {
                guard let ask = connection.asks[stream], !ask.hasHead else { continue }
                connection.end(ask, .lost)
                connection.link.cancel(stream)
            }
            connection.flush()
        }
    }

    /// Nothing more is said on a stream of the peer's.
    func answered(_ stream: UInt32) {
        answerings[stream] = nil
    }
}
