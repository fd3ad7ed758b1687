extension MetricFamily {
    /// Whose fault what went wrong was.
    static let errorFamilies = [
        MetricFamily(
            "nuthatch_errors_total", .counter, "errors",
            .sums(
                label: "side",
                [
                    Sum(metrics: clientErrors, label: "client"),
                    Sum(metrics: peerErrors, label: "peer"),
                    Sum(metrics: originErrors, label: "origin"),
                    Sum(metrics: diskErrors, label: "disk"),
                    Sum(metrics: nodeErrors, label: "node"),
                ]),
            meaning: "What went wrong by whose side it was, as other families have it one by one",
            advice: "Look at the side's own families, and at the log; node is a limit reached here."
        ),
        MetricFamily(
            "nuthatch_heads_refused_total", .counter, "answers", by: "source",
            [(.headsRefusedFromPeers, "peer"), (.headsRefusedOnDisk, "disk")],
            meaning: "Answers of peers, and on disk, whose heads no client may be given",
            advice: "The log says whose and why: a member, or a disk, that somebody has in hand."),
    ]

    private static let clientErrors: [Metric] = [
        .requestsMalformed, .responsesClientClosed, .timeoutsHead, .timeoutsBody, .timeoutsSend,
        .handshakesFailed, .timeoutsHandshake,
    ]

    private static let peerErrors: [Metric] = [
        .peerHandshakesFailed, .peerFaults, .peerRequestsFailed, .headsRefusedFromPeers,
    ]

    /// Without what was asked of no origin: what is not allowed, limits, and the circuit.
    private static let originErrors: [Metric] = [
        .originFailuresName, .originFailuresConnect, .originFailuresTLS, .originFailuresTimeout,
        .originFailuresBroken, .originFailuresProtocol, .originFailuresTooLarge,
        .originFailuresRedirects, .originResponsesServerError,
    ]

    private static let diskErrors: [Metric] = [.diskFailures, .diskRecordsLost]

    private static let nodeErrors: [Metric] = [
        .connectionsRefused, .handshakesRefused, .refusedFetches, .refusedShare, .refusedWaiters,
        .refusedWaitTime, .refusedMemory, .refusedQueue, .refusedCircuit,
    ]
}
