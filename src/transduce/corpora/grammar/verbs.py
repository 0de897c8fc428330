"""The verbs, one per line: English = German ; subjects ; objects ; adverbs of manner.

English: infinitive, past and past participle where irregular, then a particle (``turn +on``).
German: infinitive (``|`` ends a separable prefix: ``ein|schalten``), then where irregular the third person and the
participle, then ``sein`` if the perfect is formed with it and ``+dat`` if the object is in the dative.
Subjects and objects are noun classes, or single nouns by their English lemma. ``!`` marks a state: no progressive,
modal verb, perfect, imperative or place. ``~`` marks a happening, an event without intent: no progressive, modal verb
or imperative.
"""

from __future__ import annotations

__all__ = ["VERB_TABLES"]

VERB_TABLES = {
    "intransitive": """
        sleep slept slept = schlafen schläft geschlafen ; person animal ; ; calm
        work = arbeiten ; person ; ; pace care skill
        laugh = lachen ; person ; ; sound
        cry = weinen ; person ; ; sound
        smile = lächeln ; person ; ; mood
        sing sang sung = singen singt gesungen ; person bird ; ; sound skill mood
        dance = tanzen ; person ; ; pace skill mood
        play = spielen ; child boy girl son daughter dog cat squirrel monkey nephew niece ; ; calm mood
        wait = warten ; person dog ; ; patience
        cook = kochen ; person ; ; skill
        dream = träumen ; person ; ; calm
        wake woke woken +up = auf|wachen sein ; person animal ~ ; ; pace
        get got gotten +up = auf|stehen steht aufgestanden sein ; person ~ ; ; pace
        sit sat sat = sitzen sitzt gesessen ; person animal ; ; calm
        stand stood stood = stehen steht gestanden ; person horse cow donkey ; ; calm
        scream = schreien schreit geschrien ; person monkey ; ; sound
        whistle = pfeifen pfeift gepfiffen ; person ; ; sound
        snore = schnarchen ; person dog bear ; ; sound
        shop = ein|kaufen ; person ; ; pace
        study = lernen ; student pupil child boy girl son daughter ; ; calm care
        pray = beten ; person ; ; sound calm
        disappear = verschwinden verschwindet verschwunden sein ; person animal ~ ; ; pace
        arrive = an|kommen kommt angekommen sein ; person transport ~ ; ;
        stop = an|halten hält angehalten ; vehicle transport ~ ; ;
        bark = bellen ; dog fox ; ; sound
        bloom = blühen ; plant ~ ; ;
        grow grew grown = wachsen wächst gewachsen sein ; plant ~ ; ; pace
    """,
    "transitive": """
        see saw seen = sehen sieht gesehen ; person animal ! ; person animal vehicle transport building plant \
object ;
        hear heard heard = hören ; person animal ! ; person animal instrument song story radio train tram ;
        find found found = finden findet gefunden ; person animal ~ ; object garment vessel animal reading snack \
key ;
        lose lost lost = verlieren verliert verloren ; person ! ; object garment reading ;
        buy bought bought = kaufen ; person ; object garment vessel device instrument furniture vehicle snack \
staple drink plant reading opening ;
        sell sold sold = verkaufen ; person ; object garment vessel device instrument furniture vehicle snack \
staple animal ;
        have had had = haben hat gehabt ; person ! ; animal object vehicle garment instrument device topic ;
        need = brauchen ; person ! ; object garment vessel device furniture vehicle staple drink opening ;
        love = lieben ; person ! ; person animal instrument art snack plant staple ;
        know knew known = kennen kennt gekannt ; person ! ; person outdoor building art rule secret story ;
        hate = hassen ; person ! ; person animal rule salad soup staple ;
        visit = besuchen ; person ; person museum school castle church city village island ; mood
        read read read = lesen liest gelesen ; person ; reading sentence word question answer ; pace care sound
        write wrote written = schreiben schreibt geschrieben ; person ; reading sentence word answer song ; pace \
care
        open = öffnen ; person ; opening bottle letter umbrella ; care stealth pace
        close = schließen schließt geschlossen ; person ; opening umbrella book ; care sound
        turn +on = ein|schalten ; person ; device ; pace stealth
        turn +off = aus|schalten ; person ; device ; pace
        put put put +on = an|ziehen zieht angezogen ; person ; garment ; pace
        take took taken +off = aus|ziehen zieht ausgezogen ; person ; garment ; pace
        pick +up = auf|heben hebt aufgehoben ; person ; object garment reading vessel ; care pace
        throw threw thrown +away = weg|werfen wirft weggeworfen ; person ; object garment reading vessel ; \
stealth
        bring brought brought +back = zurück|bringen bringt zurückgebracht ; person ; object reading vessel \
vehicle umbrella ;
        call = an|rufen ruft angerufen ; person ; person ;
        invite = ein|laden lädt eingeladen ; person ; person ;
        clean = putzen ; person ; opening furniture shoe boot chamber vessel vehicle ; pace care
        wash = waschen wäscht gewaschen ; person ; garment vehicle dog horse pillow blanket towel vessel ; pace \
care
        repair = reparieren ; person ; vehicle device instrument furniture opening transport ; pace care skill
        build built built = bauen ; person ; house hut boat ship bridge tower furniture castle ; pace skill
        paint = malen ; person ; picture flower tree ; skill care
        draw drew drawn = zeichnen ; person ; picture map animal plant house ; skill care pace
        carry = tragen trägt getragen ; person ; object vessel furniture box suitcase instrument ; care pace
        eat ate eaten = essen isst gegessen ; person ; snack staple ; pace calm
        drink drank drunk = trinken trinkt getrunken ; person ; drink ; pace calm
        bake = backen backt gebacken ; person ; cake cookie pancake pizza bread ; skill
        order = bestellen ; person ; snack drink reading taxi furniture ;
        taste = probieren ; person ; snack staple drink ; care
        cut cut cut = schneiden schneidet geschnitten ; person ; snack bread cheese meat butter chocolate ; care pace
        break broke broken = zerbrechen zerbricht zerbrochen ; person ~ ; vessel pencil ;
        steal stole stolen = stehlen stiehlt gestohlen ; person monkey fox ; object snack garment ; stealth pace
        hide hid hidden = verstecken ; person ; object reading snack garment ; stealth pace
        catch caught caught = fangen fängt gefangen ; person cat fox wolf ; bird mouse rabbit frog squirrel hen \
goose duck ; pace skill
        feed fed fed = füttern ; person ; animal child ; calm patience
        hold held held = halten hält gehalten ; person ; object vessel umbrella instrument child reading ; calm \
care
        use = benutzen ; person ; device vehicle object vessel ; care
        touch = berühren ; person ; person animal plant instrument object ; care pace
        watch = beobachten ; person animal ; person animal ; stealth calm
        follow = folgen sein +dat ; person dog cat wolf ; person animal ; stealth pace
        help = helfen hilft geholfen +dat ; person ; person ;
        thank = danken +dat ; person ; person ;
        answer = antworten +dat ; person ; person ; calm pace
        trust = vertrauen +dat ; person ! ; person ;
        meet met met = treffen trifft getroffen ; person ; person ; stealth
        greet = grüßen ; person ; person ; mood sound
        ask = fragen ; person ; person ; calm
        hug = umarmen ; person ; person dog ; mood
        miss = vermissen ; person ! ; person dog cat ;
        accompany = begleiten ; person dog ; person ;
        examine = untersuchen ; doctor nurse scientist ; person animal picture stone machine ; care pace
        understand understood understood = verstehen versteht verstanden ; person ! ; topic poem report film ;
        forget forgot forgotten = vergessen vergisst vergessen ; person ! ; topic object garment song film ;
        explain = erklären ; person ; topic picture machine poem ; patience skill
        solve = lösen ; person ; problem ; pace skill
        discuss = besprechen bespricht besprochen ; person ; \
problem question answer idea plan mistake rule film picture book report novel ; calm
        admire = bewundern ; person ! ; hero singer dancer actor writer poet king queen art castle church tower \
plant ;
        photograph = fotografieren ; person ; person animal plant building bridge mountain vehicle transport ; skill \
stealth
        collect = sammeln ; person ; coin stone map doll postcard picture book vase ; mood
        plant = pflanzen ; person ; plant ; care
        water = gießen gießt gegossen ; person ; plant ; care
        discover = entdecken ; person ~ ; island valley castle secret mistake stone coin ;
        leave left left = verlassen verlässt verlassen ; person animal ~ ; building chamber park city village \
forest island ; sound pace stealth
        cross = überqueren ; person animal ; street bridge river market field ; pace care
        reach = erreichen ; person ~ ; building island village city bridge mountain lake beach ;
        describe = beschreiben beschreibt beschrieben ; person ; person thief picture castle plan problem machine \
; care
        play = spielen ; person ; instrument song ; skill sound
        sing sang sung = singen singt gesungen ; person ; song ; skill sound mood
        drive drove driven = fahren fährt gefahren ; person ; car truck tractor bus taxi ; care pace
        protect = beschützen ; person dog ; person animal king princess child ;
        wear wore worn = tragen trägt getragen ; person ! ; garment ring ; mood
        choose chose chosen = aus|wählen ; person ; garment object reading vessel furniture ; care
    """,
    "ditransitive": """
        give gave given = geben gibt gegeben ; person ; object reading snack vessel plant garment ;
        show showed shown = zeigen ; person ; object reading picture animal garment map vehicle instrument ; mood
        send sent sent = schicken ; person ; reading picture gift plant garment ;
        bring brought brought = bringen bringt gebracht ; person ; object snack vessel drink staple plant reading \
garment ;
        lend lent lent = leihen leiht geliehen ; person ; object garment vehicle reading instrument ;
        offer = an|bieten bietet angeboten ; person ; snack drink staple ;
        tell told told = erzählen ; person ; story secret ;
        promise = versprechen verspricht versprochen ; person ~ ; gift ring book dress bicycle horse doll answer \
;
    """,
    "motion": """
        go went gone = gehen geht gegangen sein ; person ; ; pace sound
        run ran run = laufen läuft gelaufen sein ; person animal ; ; pace
        come came come = kommen kommt gekommen sein ; person ; ;
        hurry = eilen sein ; person ; ;
        return = zurück|kehren sein ; person ; ; calm sound
        jump = springen springt gesprungen sein ; person cat dog frog monkey squirrel tiger lion ; ; pace mood
        swim swam swum = schwimmen schwimmt geschwommen sein ; person dog duck goose frog ; ; pace skill
        climb = klettern sein ; person cat monkey squirrel bear ; ; pace care skill
    """,
    "travel": """
        travel = reisen sein ; person ; ;
        drive drove driven = fahren fährt gefahren sein ; person ; ;
        fly flew flown = fliegen fliegt geflogen sein ; person ; ;
        move = ziehen zieht gezogen sein ; person ; ;
    """,
    "placing": """
        put put put = legen ; person ; object reading garment ; care
        throw threw thrown = werfen wirft geworfen ; person ; object reading garment ; mood
        carry = tragen trägt getragen ; person ; object vessel box suitcase instrument ; care
    """,
    "clausal": """
        know knew known = wissen weiß gewusst ; person ! ; ;
        say said said = sagen ; person ! ; ;
        believe = glauben ; person ! ; ;
        think thought thought = denken denkt gedacht ; person ! ; ;
        hope = hoffen ; person ! ; ;
        hear heard heard = hören ; person ! ; ;
        see saw seen = sehen sieht gesehen ; person ! ; ;
        notice = bemerken ; person ! ; ;
        write wrote written = schreiben schreibt geschrieben ; person ! ; ;
        forget forgot forgotten = vergessen vergisst vergessen ; person ! ; ;
        claim = behaupten ; person ! ; ;
        suspect = vermuten ; person ! ; ;
        report = berichten ; person ! ; ;
        admit = zu|geben gibt zugegeben ; person ! ; ;
    """,
    "infinitival": """
        try = versuchen ; person ! ; ;
        begin began begun = an|fangen fängt angefangen ; person ! ; ;
        decide = beschließen beschließt beschlossen ; person ! ; ;
        forget forgot forgotten = vergessen vergisst vergessen ; person ! ; ;
        hope = hoffen ; person ! ; ;
        plan = planen ; person ! ; ;
        promise = versprechen verspricht versprochen ; person ! ; ;
    """,
}
