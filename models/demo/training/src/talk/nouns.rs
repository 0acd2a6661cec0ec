//! Verbs and nouns of which tools are made. One noun in ten is kept from training, and with it every tool
//! that it names.

/// What tools do.
pub(crate) struct Verb {
    /// The beginnings of tool names, the first of which describes the tool, too.
    pub(crate) names: &'static str,
    /// The words by which people ask for it, each with the article of what comes next.
    pub(crate) wishes: &'static [&'static str],
}

/// Every verb.
pub(crate) const VERBS: &[Verb] = &[
    Verb {
        names: "create|add|new|make|insert",
        wishes: &[
            "create a",
            "add a",
            "make a",
            "set up a",
            "create a new",
            "add a new",
        ],
    },
    Verb {
        names: "find|search|lookup|get|fetch|show",
        wishes: &[
            "find the",
            "look up the",
            "show me the",
            "get me the",
            "find my",
            "search for the",
            "get the",
        ],
    },
    Verb {
        names: "delete|remove|erase",
        wishes: &[
            "delete the",
            "remove the",
            "get rid of the",
            "delete my",
            "erase the",
        ],
    },
    Verb {
        names: "cancel|revoke",
        wishes: &["cancel the", "cancel my", "call off the"],
    },
    Verb {
        names: "update|edit|change|modify",
        wishes: &["update the", "change the", "edit the", "update my", "change my"],
    },
    Verb {
        names: "send|forward|deliver",
        wishes: &["send the", "send a", "forward the", "send my"],
    },
    Verb {
        names: "book|reserve",
        wishes: &["book a", "reserve a", "book the", "reserve me a"],
    },
    Verb {
        names: "open|unlock",
        wishes: &["open the", "unlock the", "open my"],
    },
    Verb {
        names: "close|lock",
        wishes: &["close the", "lock the", "close my"],
    },
    Verb {
        names: "start|launch|run",
        wishes: &["start the", "run the", "launch the", "start a"],
    },
    Verb {
        names: "stop|end|halt",
        wishes: &["stop the", "end the", "stop my"],
    },
    Verb {
        names: "approve|accept|confirm",
        wishes: &["approve the", "accept the", "confirm the", "confirm my"],
    },
    Verb {
        names: "reject|decline|deny",
        wishes: &["reject the", "decline the", "turn down the"],
    },
    Verb {
        names: "print",
        wishes: &["print the", "print my", "print a"],
    },
    Verb {
        names: "archive|store|save",
        wishes: &["archive the", "store the", "save the", "file away the"],
    },
    Verb {
        names: "assign|allocate",
        wishes: &["assign the", "assign a", "allocate the"],
    },
    Verb {
        names: "rate|review",
        wishes: &["rate the", "review the", "rate my"],
    },
    Verb {
        names: "pay|settle",
        wishes: &["pay the", "pay my", "settle the"],
    },
    Verb {
        names: "move|transfer",
        wishes: &["move the", "transfer the", "move my"],
    },
    Verb {
        names: "copy|duplicate|clone",
        wishes: &["copy the", "duplicate the", "make a copy of the"],
    },
    Verb {
        names: "rename",
        wishes: &["rename the", "rename my"],
    },
    Verb {
        names: "upload|publish|post",
        wishes: &["upload the", "publish the", "post the"],
    },
    Verb {
        names: "download|export",
        wishes: &["download the", "export the", "download my"],
    },
    Verb {
        names: "list|show_all|get_all",
        wishes: &["list all", "show me all", "list the open", "which are the"],
    },
    Verb {
        names: "count",
        wishes: &["count the", "count all", "count my"],
    },
    Verb {
        names: "check|verify|validate",
        wishes: &["check the", "verify the", "check my"],
    },
    Verb {
        names: "track|follow",
        wishes: &["track the", "track my", "follow the"],
    },
    Verb {
        names: "order|buy|purchase",
        wishes: &["order a", "buy a", "order me a", "buy me a"],
    },
    Verb {
        names: "repair|fix",
        wishes: &["repair the", "fix the", "fix my"],
    },
    Verb {
        names: "schedule|plan",
        wishes: &["schedule a", "plan a", "schedule the", "plan the"],
    },
    Verb {
        names: "translate",
        wishes: &["translate the", "translate my"],
    },
    Verb {
        names: "summarize|summarise",
        wishes: &["summarize the", "give me a summary of the", "sum up the"],
    },
    Verb {
        names: "compare",
        wishes: &["compare the", "compare my"],
    },
    Verb {
        names: "calculate|compute|estimate",
        wishes: &["calculate the", "work out the", "compute the", "estimate the"],
    },
    Verb {
        names: "measure",
        wishes: &["measure the", "take the measure of the"],
    },
    Verb {
        names: "share|invite_to",
        wishes: &["share the", "share my", "invite others to the"],
    },
    Verb {
        names: "subscribe_to|join",
        wishes: &["subscribe to the", "join the", "sign up for the"],
    },
    Verb {
        names: "leave|unsubscribe_from",
        wishes: &["leave the", "unsubscribe from the", "quit the"],
    },
    Verb {
        names: "refund|return",
        wishes: &["refund the", "return the", "give back the"],
    },
    Verb {
        names: "report|flag",
        wishes: &["report the", "flag the", "report a"],
    },
    Verb {
        names: "turn_on|enable|activate",
        wishes: &["turn on the", "switch on the", "enable the", "activate the"],
    },
    Verb {
        names: "turn_off|disable|deactivate",
        wishes: &["turn off the", "switch off the", "disable the", "deactivate the"],
    },
];

/// What tools do it to.
pub(crate) const NOUNS: &str = "invoice|ticket|order|contract|report|account|subscription|parcel|room|table|meeting|appointment|task|note\
|document|file|folder|recipe|playlist|song|course|lesson|exam|patient|prescription|vehicle|tire|flight|hotel|train ticket|seat|visa|permit\
|license|bill|payment|loan|bank account|credit card|transaction|budget|expense|salary|shift|vacation|project|milestone|issue|bug|branch\
|release|server|database|backup|container|user|password|role|group|team|channel|message|email|letter|call|voicemail|contact|customer|lead\
|deal|quote|offer|product|stock item|warehouse|shipment|container ship|truck|driver|route|map|location|address|property|apartment|house|lease\
|tenant|repair job|light|lamp|heater|thermostat|door|window|alarm|camera|sensor|robot|vacuum cleaner|washing machine|oven|coffee machine|printer\
|photo|album|video|movie|series|podcast|book|article|newsletter|blog post|comment|survey|poll|vote|event|party|concert|show|festival|trip|tour\
|guide|restaurant|menu|dish|pizza|drink|groceries|shopping list|coupon|gift card|warranty|claim|insurance policy|accident|donation|campaign\
|advert|logo|website|page|form|template|label|tag|category|language|translation|glossary|dictionary entry|formula|chart|spreadsheet|dataset\
|model|experiment|sample|measurement|test|assay|plant|garden bed|tree|animal|pet|horse|field|harvest|machine|tool|part|engine|battery|charger\
|phone number|device|network|router|cable|key|badge|locker|parking spot|bicycle|scooter|taxi|bus|boat|ferry|cabin|tent|match|tournament|player\
|club|membership|workout|diet|step goal|weight|score|level|quest|character|avatar|wallet|coin|bond|fund|share|tax return|receipt|audit|policy\
|deadline|reminder|timer|calendar|holiday|birthday|wedding|seminar|workshop|thesis|grade|student|teacher|classroom|library card|loaned book";
